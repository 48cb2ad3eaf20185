"""The formulas of a certificate: scaling of a problem, its target gap, and checks of its bounds.

These are Python functions of a few numbers. The code for one problem calls them directly; the code
for many small problems compiles them (:mod:`epsilot.kernels.small`).
"""

from __future__ import annotations

import math
import sys

#: Range of costs, masses and values in which float64 has full precision.
SMALLEST, LARGEST = 1e-304, 1e305
#: Range of the largest cost in which costs are not scaled by a power of two.
UNSCALED_RANGE = 2.0**-60, 2.0**60
#: Fraction of the largest cost up to which the smallest cost is not subtracted.
NEGLIGIBLE_OFFSET = 0.01
#: Relative error of a bound, which is a sum of float64 products.
ROUND_OFF = 1e-13
#: Fraction of the costs below which an optimum counts as 0 for a relative gap.
LEAST_OPTIMUM = 1e-9
#: Relative error of a gap from converting both bounds to the user's units.
CONVERSION_ERROR = 8 * sys.float_info.epsilon
#: Largest l1 distance of a plan of mass 1 from its marginals.
FEASIBLE = 1e-12


def are_held(cost: float, mass: float) -> bool:
    """Tell whether float64 holds costs up to this size, a mass and their product safely."""
    value = cost * mass
    return cost == 0 or (min(cost, mass, value) >= SMALLEST and max(mass, value) <= LARGEST)


def scaling_power(size: float) -> int:
    """Return the even power of two to divide costs of this size by: 0 for an ordinary size."""
    if size == 0 or UNSCALED_RANGE[0] <= size <= UNSCALED_RANGE[1]:
        return 0
    return 2 * (min(math.frexp(size)[1], 1022) // 2)


def cost_offset(low: float, high: float) -> float:
    """Return the offset to subtract from costs in [low, high]: 0 if it is not worth a copy."""
    return 0.0 if 0 <= low <= NEGLIGIBLE_OFFSET * high else low


def least_gap(size: float) -> float:
    """Return the smallest gap that can be certified for costs of this size."""
    return ROUND_OFF * size


def relative_gap(rtol: float, optimum: float, size: float) -> float:
    """Return the gap that ``rtol`` allows; for an optimum near 0, relative to the costs."""
    return rtol * max(abs(optimum), max(LEAST_OPTIMUM, ROUND_OFF / rtol) * size)


def conversion_slack(size: float) -> float:
    """Bound the error of a gap from converting bounds of this size to the user's units."""
    return CONVERSION_ERROR * size


def is_within(upper: float, lower: float, allowed: float, slack: float) -> bool:
    """Tell whether two bounds are close enough, also after conversion to the user's units."""
    return upper - lower <= allowed - slack


def are_consistent(upper: float, lower: float, size: float) -> bool:
    """Tell whether two bounds are finite and in order, up to round-off."""
    error = ROUND_OFF * max(abs(upper), abs(lower), size)
    return -error <= upper - lower < math.inf


def to_user(value: float, shift: float, mass: float, unit: float) -> float:
    """Convert a value of the internal objective to the user's units."""
    return unit * (mass * (value + shift))
