"""What a proof is made of: the bracket of one evaluation, the final proof, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..kernels.proof import ROUND_OFF

#: The least gap that is asked for by default, likewise: one that can be certified.
MIN_DEFAULT_GAP = 2 * ROUND_OFF
#: l1 distance from its marginals that a plan of mass 1 may have that somebody else computed.
AUDIT_TOLERANCE = 1e-9

BUG_NOTE = "This is a bug in epsilot; please report it with the problem."


@dataclass(frozen=True)
class Certificate:
    """The bracket ``lower <= OT <= upper`` proved for somebody's output.

    ``is_feasible`` tells whether the plan was feasible as given (to 1e-9 of the mass, in l1);
    ``upper`` is the cost of its rounding in any case.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> audit = epsilot.certify(1.0 - np.eye(2), plan=np.full((2, 2), 0.25))
    >>> audit.is_feasible, round(audit.gap, 6)
    (True, 0.5)
    """

    upper: float
    lower: float
    gap: float
    marginal_error: float
    is_feasible: bool


P = TypeVar("P")
D = TypeVar("D")


class Bracket(NamedTuple, Generic[P, D]):
    """One evaluation, in the problem's internal units."""

    plan: P
    upper: float
    potentials: D
    lower: float
    marginal_error: float


class Proof(NamedTuple):
    """What a plan and potentials prove, in the problem's internal units."""

    upper: float
    lower: float
    cost: float  # <C, X>
