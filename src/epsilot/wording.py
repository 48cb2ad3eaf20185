"""How values, paths and other errors stand in a sentence: on one line, and short."""

from __future__ import annotations

import re

#: Characters of a value that a sentence repeats.
LONGEST_SHOWN = 60
#: Characters of a path (its end) or of another error (its beginning) that a sentence repeats.
LONGEST_NAMED = 100
#: Where an object is in memory, which its text may say.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: object) -> str:
    """Return a value as it is written in Python, and not more of it than fits."""
    return shorter(_ADDRESS.sub("", repr(value)), LONGEST_SHOWN)


def named(path: object) -> str:
    """Return a path, or its end if it is long."""
    text = " ".join(str(path).split())
    return text if len(text) <= LONGEST_NAMED else f"...{text[-LONGEST_NAMED:]}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its beginning, without a final stop."""
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    return shorter(lines[0].rstrip(".") if lines else type(error).__name__, LONGEST_NAMED)


def shorter(text: str, length: int) -> str:
    """Return a text on one line, or its beginning if it is long."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[:length]}..."
