"""Format counts, durations and operations for people."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..problems.problem import Problem
    from ..problems.work import Work


#: Relative gap at and below which a result is called exact.
EXACT = 1e-9
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
    if seconds < 0.00095:
        return f"{1000 * seconds:.1g} ms"
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


def cost_words(problem: Problem) -> str | None:
    """Return the cost of a problem in words, if it has a metric."""
    metric = problem.geometry.cost_metric
    return None if metric is None else metric.words


def distance_note(problem: Problem, quantity: str, value: float) -> str | None:
    """Return the Wasserstein distance that a transport cost is a power of, such as "W2 = 0.5".

    None for other problems, for costs that are no power of a distance, and for masses other than 1.
    """
    metric = problem.geometry.cost_metric
    order = None if metric is None else metric.order
    is_known = quantity == "transport cost" and math.isclose(problem.mass, 1.0, rel_tol=1e-9)
    if order is None or not is_known or value < 0:
        return None
    return f"W{order:g} = {value ** (1 / order):.6g}"


def accuracy_note(quantity: str, value: float, lower: float) -> str:
    """Return how near a transport cost is to the optimum, and how to ask for the exact one.

    Examples
    --------
    >>> accuracy_note("transport cost", 1.0, 0.991)
    'within 0.91 %; rtol=1e-9 for the exact optimum'
    >>> accuracy_note("transport cost", 1.0, 1.0)
    'exact to rounding'
    """
    if quantity != "transport cost" or not lower > 0:
        return ""
    excess = value / lower - 1
    if excess <= EXACT:
        return "exact to rounding"
    return f"within {100 * excess:.2g} %; rtol=1e-9 for the exact optimum"


#: Significant decimal digits that float64 always keeps.
FLOAT64_DIGITS = 15


def outward(lower: float, upper: float) -> tuple[str, str]:
    """Return both bounds with few digits, the lower rounded down and the upper rounded up.

    Examples
    --------
    >>> outward(0.123456789, 0.125123456)
    ('0.1234', '0.1252')
    """
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return f"{lower:g}", f"{upper:g}"
    size = max(abs(lower), abs(upper))
    if size == 0:
        return "0", "0"
    place = math.floor(math.log10(size)) - FLOAT64_DIGITS + 1
    if upper > lower:
        place = max(place, math.floor(math.log10(upper - lower)) - 1)
    unit = Decimal(1).scaleb(place)
    numbers = (
        Decimal(x).quantize(unit, rounding=way) if abs(x) < 1e25 * float(unit) else Decimal(x)
        for x, way in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    )
    texts = (f"{x:f}" if place + FLOAT64_DIGITS > -5 and size < 1e15 else f"{x:E}" for x in numbers)
    low, high = (x.rstrip("0").rstrip(".") if "." in x and "E" not in x else x for x in texts)
    return low, high
