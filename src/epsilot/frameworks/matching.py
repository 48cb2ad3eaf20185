"""Partners of points: the assignment of least cost, or draws from a plan."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from .. import parallel
from .._types import Array, Index, Vector
from ..engine.batch.engine import BatchGoal, solve_packed
from ..engine.batch.problems import COMPILED, Stack, flat
from ..errors import InvalidProblem
from ..kernels.points import cloud_costs
from ..kernels.products import squared_distances
from ..kernels.small_simplex import is_small
from ..metrics import METRICS
from .losses import CloudLoss, MatrixLoss

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
    with parallel.limit(n_threads):
        costs = _costs(x, y, metric)
        if costs is not None and a is None and b is None and x.shape[-2] == y.shape[-2]:
            found = _assigned(costs)
            if found is not None:
                return found
    if costs is not None and x.shape[-1] >= MANY_COORDINATES and np.isfinite(costs).all():
        solved = MatrixLoss(rtol=EXACT, n_threads=n_threads).solve(costs, a, b)
    else:
        solved = clouds.solve(x, y, a, b)
    rng = np.random.default_rng(seed)
    plans = (sparse.csr_array(plan) for plan in solved.plans)
    return np.array([_drawn(plan, rng) for plan in plans]), solved.gap


def _costs(x: Array, y: Array, metric: str) -> Array | None:
    """Return the costs (k, n, m) where a matrix is the way to the plan, else None."""
    (k, n, d), m = x.shape, y.shape[-2]
    if METRICS[metric].square == 1 and d >= MANY_COORDINATES:
        out = np.empty((k, n, m))
        for clouds in zip(x, y, out, strict=True):
            squared_distances(*clouds)
        return out
    if metric not in COMPILED or not is_small(n, m):
        return None
    out = np.empty((k, n, m))
    sizes = np.array([(n, m, d)] * k)
    cloud_costs(flat(x), flat(y), METRICS[metric].code, sizes, out.reshape(-1))
    return out


def _assigned(costs: Array) -> tuple[Index, Vector] | None:
    """Return the assignments of least costs and their gaps, or None where more is needed.

    Small problems go straight to the compiled solver, which proves each or leaves it alone.
    """
    k, n, m = costs.shape
    if not is_small(n, m):
        return None
    found, gaps = [], []
    chunks = Stack(k, costs, None, None, normalize=False).chunks(0)
    for _, answers in parallel.in_order(partial(solve_packed, goal=BatchGoal(0.0, EXACT)), chunks):
        if not answers.n_arcs.all():
            return None
        found.append(answers.arcs[1].reshape(-1, 2, n)[:, 0])  # there is room for n + m arcs
        gaps.append(answers.numbers[:, 0] - answers.numbers[:, 1])
    return np.concatenate(found), np.concatenate(gaps)


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
