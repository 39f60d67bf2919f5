"""Decodes YAML and JSON as Kubernetes does, with limits against hostile input.

Each document has its number and line, and a value or the reason why it is refused.
"""

from quarterdeck.strict_yaml.decode_json import decode_json
from quarterdeck.strict_yaml.decode_yaml import decode_yaml, split_yaml
from quarterdeck.strict_yaml.documents import Document, Refusal

__all__ = ["Document", "Refusal", "decode_json", "decode_yaml", "split_yaml"]
