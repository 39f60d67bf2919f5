"""YAML and JSON text to plain data, as Kubernetes reads it, with limits against hostile input.

A document is given with its number and line, or with the reason why it is refused.
"""

from quarterdeck.strict_yaml.decode_json import decode_json
from quarterdeck.strict_yaml.decode_yaml import decode_yaml, split_yaml
from quarterdeck.strict_yaml.documents import Document, Refusal

__all__ = ["Document", "Refusal", "decode_json", "decode_yaml", "split_yaml"]
