"""The proof: a feasible plan above, a feasible dual below, recomputed from the result itself.

Nothing here trusts a solver. The plan is rounded onto the transport polytope and priced; the
potentials are c-transformed, so that they are dual feasible; both in float64. Their values
bracket the optimum, whatever the method did.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._types import Potentials, Vector
from .errors import CertificateError
from .geometry import Geometry
from .kernels.vectors import dot, log
from .plan import Core, Plan
from .problem import Problem
from .rounding import round_onto

#: Relative accuracy of a bound: what a sum of float64 products may be off by.
ROUND_OFF = 1e-13


@dataclass(frozen=True)
class Certificate:
    """The bracket ``lower <= OT <= upper`` proved for somebody's output.

    ``is_feasible`` tells whether the plan was feasible as given (to 1e-9 of the mass, in l1);
    ``upper`` is the cost of its rounding in any case.
    """

    upper: float
    lower: float
    gap: float
    marginal_error: float
    is_feasible: bool


class Bracket(NamedTuple):
    """One evaluation, in the problem's internal units."""

    plan: Plan
    upper: float
    potentials: Potentials
    lower: float
    marginal_error: float


def finite_dot(weights: Vector, values: Vector) -> float:
    """Return <weights, values> where empty entries (weight 0) may hold any value."""
    return dot(weights, np.where(weights > 0, values, 0.0))


def dual_feasible(geometry: Geometry, f: Vector) -> Potentials:
    """Return c-transforms (f', g') of a row potential: f'_i + g'_j <= C_ij in floating point.

    A constant that f carries would cost digits and is taken off: the largest becomes (nearly) 0.
    """
    g = geometry.ctransform_cols(f - f.max())
    f = geometry.ctransform_rows(g)
    # The sum f + g rounds too: step below by a few units in the last place.
    margin = 4 * np.finfo(float).eps * max(np.abs(f).max(), np.abs(g).max(), geometry.bounds[1])
    return f - margin, g


def bracket(problem: Problem, core: Core, f: Vector, reg: float | None = None) -> Bracket:
    """Return certified bounds on the optimal cost from any core plan and any row potential.

    With ``reg`` the bounds are on the entropic optimum min <C, X> - reg H(X).
    """
    geometry, p, q = problem.geometry, problem.p, problem.q
    plan, upper, error = round_onto(core, p, q, geometry)
    if reg is None:
        f, g = dual_feasible(geometry, f)
    else:
        upper -= reg * plan.entropy()
        f, g = entropic_potentials(geometry.exact, f, p, q, reg)
    lower = finite_dot(p, f) + finite_dot(q, g)
    # An internal unit of round-off: costs are shifted to [0, cost_max].
    slack = ROUND_OFF * max(abs(upper), abs(lower), problem.cost_max, reg or 0.0)
    if not upper - lower >= -slack:
        raise CertificateError(
            f"the upper bound {upper!r} is below the lower bound {lower!r}: this is a bug in "
            "epsilot; please report it with the problem."
        )
    return Bracket(plan, upper, (f, g), lower, error)


def entropic_potentials(
    geometry: Geometry, f: Vector, p: Vector, q: Vector, eta: float
) -> Potentials:
    """Return the potentials after one exact column and one exact row update from f.

    The plan they define has mass 1, so <f, p> + <g, q> is the entropic dual value.
    """
    g = eta * (log(q) - geometry.lse_cols(f, eta))
    f = eta * (log(p) - geometry.lse_rows(g, eta))
    return f, g
