"""Bounds of one evaluation, and the final proof."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from ..kernels.proof import ROUND_OFF

#: Smallest default gap, as a share of the costs: a gap that float64 can certify.
MIN_DEFAULT_GAP = 2 * ROUND_OFF
#: Largest l1 marginal error at which an audited plan of mass 1 counts as feasible.
AUDIT_TOLERANCE = 1e-9

BUG_NOTE = "This is a bug in epsilot; please report it with the problem."


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
