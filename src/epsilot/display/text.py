"""Format counts, durations and operations for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..problems.work import Work

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scientific(number: float, digits: int = 1) -> str:
    """Return a number in scientific notation with ``digits`` decimals, or plainly if it is short.

    Examples
    --------
    >>> scientific(4_230_000)
    '4.2·10⁶'
    >>> scientific(950)
    '950'
    """
    if not math.isfinite(number) or number == 0 or 1e-4 <= abs(number) < 1e4:
        return f"{number:.4g}"
    mantissa, exponent = f"{number:.{digits}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def is_counted(work: Work) -> bool:
    """Tell whether the operations are known; POT's network simplex does not count its own."""
    return "pivot" not in work.units


def operations_text(work: Work) -> str:
    """Return the number of operations of a run."""
    return f"{scientific(work.operations) if is_counted(work) else 'uncounted'} operations"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one.

    Examples
    --------
    >>> counted(1, "epoch"), counted(1200, "epoch")
    ('1 epoch', '1,200 epochs')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def clock(seconds: float) -> str:
    """Return a duration in milliseconds, seconds, minutes or hours.

    Examples
    --------
    >>> clock(0.0123), clock(3.21), clock(75)
    ('12 ms', '3.2 s', '1:15')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def compile_note(seconds: float) -> str:
    """Return a note on the seconds of compilation, if there were any to speak of.

    Examples
    --------
    >>> compile_note(4.2)
    ' (and 4.2 s compiling, once)'
    >>> compile_note(0.01)
    ''
    """
    return f" (and {clock(seconds)} compiling, once)" if seconds >= 0.1 else ""
