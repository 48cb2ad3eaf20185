"""Partners of points: the assignment of least cost, or draws from a plan."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..._types import Array, Index, Matrix, Vector
from ...errors import InvalidProblem
from ...kernels.products import product
from .values import CloudLoss, MatrixLoss

#: Relative gap that stands for exact.
EXACT = 1e-9
#: Coordinates from which on squared distances come from inner products.
MANY_COORDINATES = 16


def partners(
    x: Array,
    y: Array,
    a: Array | None,
    b: Array | None,
    *,
    metric: str = "sqeuclidean",
    seed: int = 0,
    n_threads: int | None = None,
) -> tuple[Index, Vector]:
    """Return for each point of k clouds x (k, n, d) the number of its partner in y, and the gaps.

    The plan is optimal. If it is a permutation, which it is for uniform weights on as many points,
    that is returned; if not, each partner is drawn from its row of the plan.
    """
    clouds = CloudLoss(metric=metric, rtol=EXACT, n_threads=n_threads)
    if metric == "sqeuclidean" and x.shape[-1] >= MANY_COORDINATES:
        costs = np.array([squared_distances(p, q) for p, q in zip(x, y, strict=True)])
        solved = MatrixLoss(rtol=EXACT, n_threads=n_threads).solve(costs, a, b)
    else:
        solved = clouds.solve(x, y, a, b)
    rng = np.random.default_rng(seed)
    plans = (sparse.csr_array(plan) for plan in solved.plans)
    return np.array([_drawn(plan, rng) for plan in plans]), solved.gap


def squared_distances(x: Matrix, y: Matrix) -> Matrix:
    """Return the squared distances, each within rounding of the largest, by inner products."""
    middle = x.mean(axis=0, dtype=np.float64)
    x, y = x - middle, y - middle
    inner = product(np.ascontiguousarray(x), np.ascontiguousarray(y.T))
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * inner, 0.0))


def _drawn(plan: sparse.csr_array, rng: np.random.Generator) -> Index:
    """Return a partner for each row: the one that gets all of its mass, or a draw."""
    masses = plan.sum(axis=1)
    if not masses.all():
        i = int(np.argmin(masses > 0))
        raise InvalidProblem(f"a[{i}] is 0; a point without mass has no partner (remove it).")
    ends = np.cumsum(plan.data)
    starts = np.concatenate(([0.0], ends))[plan.indptr[:-1]]
    places = np.searchsorted(ends, starts + rng.random(len(masses)) * masses, side="right")
    places = np.clip(places, plan.indptr[:-1], plan.indptr[1:] - 1)
    return np.asarray(plan.indices[places], np.int64)
