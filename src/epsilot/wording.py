"""Shorten values, paths and errors so that they fit into one line of a message."""

from __future__ import annotations

import re

#: Characters of a value that a message repeats.
LONGEST_SHOWN = 60
#: Characters of a path (its end) or of another error (its beginning) that a message repeats.
LONGEST_NAMED = 100
#: Memory address in the repr of an object.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: object) -> str:
    """Return the repr of a value, shortened."""
    return shorter(_ADDRESS.sub("", repr(value)), LONGEST_SHOWN)


def named(path: object) -> str:
    """Return a path, or its end if it is long."""
    text = " ".join(str(path).split())
    return text if len(text) <= LONGEST_NAMED else f"...{text[-LONGEST_NAMED:]}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, shortened and without a full stop."""
    lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
    return shorter(lines[0].rstrip(".") if lines else type(error).__name__, LONGEST_NAMED)


def shorter(text: str, length: int) -> str:
    """Return a text on one line, cut after ``length`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[:length]}..."
