"""The proximal iteration of unbalanced methods: plans exp(U ⊕ V - κ C), held to the last one.

Each step is made for the objective plus η KL(X | K), where K is the plan so far; κ grows by 1/η, so
that no regularisation is left in the limit.
"""

from __future__ import annotations

from .._types import Vector
from ..kernels.vectors import log
from ..problems.problem import Penalised

#: η as a share of the largest cost: for cheap and for dear misses.
SMALL_STEP, LARGE_STEP = 0.02, 0.05
#: Prices above this share of the largest cost are dear.
DEAR = 0.5
#: Largest exponent κ max C: beyond, its digits are lost.
SHARPEST = 1e10
#: Sweeps with the first η. From then on η falls while a sweep changes potentials by less than a
#: share of it: a few very large costs would make steps of constant length too short for the others.
FIRST_SWEEPS, SMALL_CHANGE = 200.0, 1e-4


def proximal_eta(problem: Penalised, share: float | None = None) -> float:
    """Return the first η of the proximal term, by default a share that depends on the prices."""
    size = cost_size(problem)
    if share is None:
        is_dear = min(problem.price_a, problem.price_b) > DEAR * size
        share = LARGE_STEP if is_dear else SMALL_STEP
    return share * size


def next_eta(eta: float, sharpness: float, change: float) -> float:
    """Return the η of the next sweep, after one that changed potentials by this share of η."""
    return min(eta, FIRST_SWEEPS / sharpness) if change < SMALL_CHANGE else eta


def is_sharpest(problem: Penalised, sharpness: float) -> bool:
    """Tell whether no exponent may grow."""
    return sharpness * cost_size(problem) > SHARPEST


def independent(problem: Penalised) -> tuple[Vector, Vector]:
    """Return (U, V) of the independent plan p qᵀ / √(|p| |q|)."""
    mean = 0.5 * log(float(problem.p.sum() * problem.q.sum()))
    return problem.log_p - 0.5 * mean, problem.log_q - 0.5 * mean


def cost_size(problem: Penalised) -> float:
    """Return the largest absolute cost, or 1 where all costs are zero."""
    return max(abs(x) for x in problem.geometry.bounds) or 1.0
