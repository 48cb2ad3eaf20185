"""The scaling of a problem, its goal and what proves it: each formula once.

These are Python functions of a few numbers. One problem is solved by code that calls them as they
are, many small ones by kernels that compile them (:mod:`epsilot.kernels.small`).
"""

from __future__ import annotations

import math
import sys

#: Sizes of costs, masses and values that leave float64 all its digits.
SMALLEST, LARGEST = 1e-304, 1e305
#: Largest costs between these are left as they are; others are scaled by a power of two.
ORDINARY = 2.0**-60, 2.0**60
#: A smallest cost below this share of the largest is left where it is.
NEGLIGIBLE_OFFSET = 0.01
#: Relative accuracy of a bound: what a sum of float64 products may be off by.
ROUND_OFF = 1e-13
#: Share of the costs below which an optimum counts as 0 where a relative gap is asked for.
LEAST_OPTIMUM = 1e-9
#: Relative error of a gap from turning both its bounds into the user's units.
CONVERSION = 8 * sys.float_info.epsilon
#: l1 distance from its marginals that a plan of mass 1 may have.
FEASIBLE = 1e-12


def are_held(cost: float, mass: float) -> bool:
    """Tell whether float64 holds costs up to this size, a mass and their product well."""
    value = cost * mass
    return cost == 0 or (min(cost, mass, value) >= SMALLEST and max(mass, value) <= LARGEST)


def scaling_power(size: float) -> int:
    """Return the even power of two to divide costs of this size by: 0 for an ordinary size."""
    if size == 0 or ORDINARY[0] <= size <= ORDINARY[1]:
        return 0
    return 2 * (min(math.frexp(size)[1], 1022) // 2)


def cost_offset(low: float, high: float) -> float:
    """Return what is subtracted from costs between these: 0 if it is not worth a copy of them."""
    return 0.0 if 0 <= low <= NEGLIGIBLE_OFFSET * high else low


def least_gap(size: float) -> float:
    """Return the smallest gap that can be certified for costs of this size."""
    return ROUND_OFF * size


def relative_gap(rtol: float, optimum: float, size: float) -> float:
    """Return the gap that ``rtol`` allows; an optimum near 0 is judged by the size of the costs."""
    return rtol * max(abs(optimum), max(LEAST_OPTIMUM, ROUND_OFF / rtol) * size)


def conversion_slack(size: float) -> float:
    """Return what turning bounds of this size into the user's units may add to a gap."""
    return CONVERSION * size


def is_within(upper: float, lower: float, allowed: float, slack: float) -> bool:
    """Tell whether two bounds are close enough, and stay so in the user's units."""
    return upper - lower <= allowed - slack


def are_consistent(upper: float, lower: float, size: float) -> bool:
    """Tell whether two bounds are finite and contradict each other by rounding at most."""
    room = ROUND_OFF * max(abs(upper), abs(lower), size)
    return -room <= upper - lower < math.inf


def to_user(value: float, shift: float, mass: float, unit: float) -> float:
    """Return a value of the internal objective in the user's units."""
    return unit * (mass * (value + shift))
