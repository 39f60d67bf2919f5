"""Image references: `registry:port/path/name:tag@sha256:digest`. Pure."""

import re

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*+"
_HOST = r"(?:[A-Za-z0-9.-]++|\[[0-9a-fA-F:]++\])(?::[0-9]{1,5})?"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*+(?::\w[\w.-]{{0,127}}+)?"
    r"(?:@[A-Za-z][A-Za-z0-9]*+(?:[+._-][A-Za-z][A-Za-z0-9]*+)*+:[0-9a-fA-F]{32,}+)?\Z",
    re.ASCII,
)
_LONGEST = 512


def is_one_word(text: str) -> bool:
    """Whether a text has no blank, line break or control character."""
    return text.isprintable() and not any(map(str.isspace, text))


def is_image(text: str) -> bool:
    """Whether a text is an image reference."""
    return len(text) <= _LONGEST and _IMAGE.match(text) is not None
