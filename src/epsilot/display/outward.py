"""Write bounds with few digits such that they stay bounds."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

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
