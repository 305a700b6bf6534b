"""The encoding that a Python source declares: Python decodes by it, whatever the text looks like in another."""

from __future__ import annotations

import codecs
import re

_LINE_END = re.compile(rb"\r\n?|\n")
_WITHOUT_CODE = re.compile(rb"[ \t\f]*(#|$)")
_DECLARATION = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def declared_encoding(source: bytes) -> str:
    """Return what one of the first two lines declares, as in https://peps.python.org/pep-0263/; '' for nothing."""
    first, second, *_ = [*_LINE_END.split(source, 2), b""]
    lines = [first, second] if _WITHOUT_CODE.match(first) else [first]
    found = next(filter(None, map(_DECLARATION.match, lines)), None)
    if not found:
        return ""
    name = found[1].decode()
    try:
        return codecs.lookup(name).name
    except LookupError:
        return name
