"""Bounds of one evaluation, the final proof, and the certificate that users see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..kernels.proof import ROUND_OFF

#: Smallest default gap, as a share of the costs: a gap that float64 can certify.
MIN_DEFAULT_GAP = 2 * ROUND_OFF
#: Largest l1 marginal error at which an audited plan of mass 1 counts as feasible.
AUDIT_TOLERANCE = 1e-9

BUG_NOTE = "This is a bug in epsilot; please report it with the problem."


@dataclass(frozen=True)
class Certificate:
    """Proved bounds ``lower <= OT <= upper`` for a plan and potentials from any source.

    Attributes
    ----------
    upper : float
        The cost of the plan after rounding to its marginals.
    lower : float
        No plan costs less.
    gap : float
        ``upper - lower``.
    marginal_error : float
        l1 distance of the plan from its marginals, as it was given.
    is_feasible : bool
        Whether the plan was feasible as given (to 1e-9 of the mass, in l1).

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


class Evaluation(NamedTuple, Generic[P, D]):
    """Plan, potentials and bounds of one evaluation, in internal units."""

    plan: P
    upper: float
    potentials: D
    lower: float
    marginal_error: float


class Proof(NamedTuple):
    """Bounds that a plan and potentials prove, in internal units."""

    upper: float
    lower: float
    cost: float  # <C, X>
