"""Check a result without the code that made it: the plan, the cover, and the bounds they prove.

Plain NumPy, from the clouds, the stored values and the stored pieces only. Signs of determinants
that float64 does not decide are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from .._types import Index, Matrix, Vector
from ..errors import CertificateError
from ..kernels.proof import FEASIBLE
from ..problems.objective import BUG_NOTE
from ..problems.plan import Arcs
from .cover import Boxes, Cover, Simplices
from .problem import ROUND_OFF, GromovProblem


@dataclass(frozen=True)
class VerifierTolerances:
    """Shares by which numbers that a proof compares may differ, and sizes of its sums."""

    # Determinants below this share of the product of their edges are computed exactly.
    undecided: float = 1e-11
    on_face: float = 1e-12  # relative distance of a corner from the outer face that it is on
    # Arcs up to which the objective is also summed over all pairs of arcs.
    max_paired_arcs: int = 64
    max_block_entries: int = 1 << 15  # entries of costs that are computed at a time
    agreement: float = 1e-11  # relative difference of two ways to compute the objective


TOLERANCES = VerifierTolerances()

#: Returns potentials of the columns for the transport problem of a matrix.
Solve: TypeAlias = Callable[[Vector], Vector]


def _refuse(what: str) -> CertificateError:
    return CertificateError(f"{what}. {BUG_NOTE}")


# -- the plan --------------------------------------------------------------------------------------


def value_of(problem: GromovProblem, plan: Arcs) -> tuple[float, float]:
    """Return the objective of a plan and the l1 distance from its marginals, or raise."""
    p, q, (i, j, w) = problem.p, problem.q, (plan.i, plan.j, plan.flow)
    n, m = p.size, q.size
    if plan.shape != (n, m) or not (i.size == j.size == w.size > 0):
        raise _refuse("the plan has arrays of wrong sizes")
    if not (i.min() >= 0 and i.max() < n and j.min() >= 0 and j.max() < m):
        raise _refuse("the plan has arcs outside the clouds")
    if not w.min() >= 0:
        raise _refuse("the plan has a negative entry")
    error = np.abs(np.bincount(i, w, n) - p).sum() + np.abs(np.bincount(j, w, m) - q).sum()
    if not error <= FEASIBLE:
        raise _refuse(f"the plan misses its marginals by {error:.3g}")
    x, y = problem.X[i], problem.Y[j]
    x2, y2 = (x * x).sum(axis=1), (y * y).sum(axis=1)
    linear = _linear(problem, i, j, w)
    square = 0.0
    for a in range(x.shape[1]):
        for b in range(y.shape[1]):
            square += float((w * x[:, a] * y[:, b]).sum()) ** 2
    value = constant(problem) + linear - 4 * float((w * x2 * y2).sum()) - 8 * square
    if w.size <= TOLERANCES.max_paired_arcs:
        apart = ((x[:, None] - x) ** 2).sum(axis=2) - ((y[:, None] - y) ** 2).sum(axis=2)
        paired = float((apart**2 * np.multiply.outer(w, w)).sum()) + linear
        if not abs(paired - value) <= TOLERANCES.agreement * problem.scale:
            raise _refuse(f"the objective is {value!r} by moments and {paired!r} by distances")
    return max(value, floor(problem)), float(error)  # a square is not below 0 but for rounding


def _linear(problem: GromovProblem, i: Index, j: Index, w: Vector) -> float:
    """Return <M, P>."""
    return float((w * problem.M[i, j]).sum()) if problem.M.size else 0.0


def constant(problem: GromovProblem) -> float:
    """Return K, the part of the objective that no plan changes."""
    total, means = 0.0, []
    for X, w in ((problem.X, problem.p), (problem.Y, problem.q)):
        x2 = (X * X).sum(axis=1)
        mean = float((w * x2).sum())
        covariance = 0.0
        for a in range(X.shape[1]):
            for b in range(X.shape[1]):
                covariance += float((w * X[:, a] * X[:, b]).sum()) ** 2
        total += 2 * float((w * x2 * x2).sum()) + 2 * mean * mean + 4 * covariance
        means.append(mean)
    return total - 4 * means[0] * means[1]


# -- the cover -------------------------------------------------------------------------------------


def bound_of(problem: GromovProblem, cover: Cover) -> float:
    """Return the lower bound of the objective that a cover proves, or raise."""
    if isinstance(cover, Simplices):
        _check_around(problem, cover.radius)
        check_tiling(cover.points, cover.corners, cover.radius)
        low = bound_of_simplices(cover)
    else:
        check_box(problem, cover.lows[0], cover.highs[0])
        check_halving(cover)
        low = bound_of_boxes(cover)
    if not math.isfinite(low):
        raise _refuse("the cover has bounds that are not finite")
    return max(constant(problem) + low, floor(problem))


def floor(problem: GromovProblem) -> float:
    """Return the least value of the form itself: squares are not negative."""
    return float(problem.M[:, : problem.q.size].min()) if problem.M.size else 0.0


def check_values(problem: GromovProblem, cover: Cover, solve: Solve) -> None:
    """Raise unless potentials prove the values of V from which the bound follows.

    Boxes whose potentials were not kept get some from ``solve``; any potentials prove a bound.
    """
    if isinstance(cover, Simplices):
        for c, v, g in zip(cover.points, cover.values, cover.prices, strict=True):
            _check_value(problem, c, float(v), g)
        return
    for b in np.unique(cover.sources):
        c = (cover.lows[b] + cover.highs[b]) / 2
        row = cover.price_rows[b]
        _check_value(
            problem, c, float(cover.values[b]), cover.prices[row] if row >= 0 else solve(c)
        )


def _check_value(problem: GromovProblem, c: Vector, v: float, g: Vector) -> None:
    """Raise unless potentials g of the columns prove that V is at most v at a matrix c."""
    p, q, n, m = problem.p, problem.q, problem.p.size, problem.q.size
    X, Y = problem.X, problem.Y
    # A constant changes no bound, but a large one would widen the tolerance for round-off.
    g = g - float((q * g).sum()) / float(q.sum())
    U = np.column_stack([4 * (X**2).sum(axis=1), 16 * X @ c.reshape(X.shape[1], Y.shape[1])])
    W = np.column_stack([(Y**2).sum(axis=1), Y])
    f = np.empty(n)
    rows = max(1, TOLERANCES.max_block_entries // m)
    for i in range(0, n, rows):
        C = -U[i : i + rows] @ W.T - g
        if problem.M.size:
            C += problem.M[i : i + rows, :m]
        f[i : i + rows] = C.min(axis=1)
    proved = -float((p * f).sum()) - float((q * g).sum())
    size = problem.scale + float((p * np.abs(f)).sum() + (q * np.abs(g)).sum())
    if not proved <= v + ROUND_OFF * size:
        raise _refuse(f"a value of V is {v!r} and its potentials prove {proved!r}")


def _check_around(problem: GromovProblem, radius: float) -> None:
    """Raise unless the cross-polytope holds all cross moments: |Z|₁² <= D E|x|² E|y|²."""
    mx = float((problem.p * (problem.X**2).sum(axis=1)).sum())
    my = float((problem.q * (problem.Y**2).sum(axis=1)).sum())
    if not problem.dimension * mx * my <= radius**2:
        raise _refuse("the cross-polytope does not hold all cross moments")


def bound_of_simplices(cover: Simplices) -> float:
    """Return the least min_i 16 <A, c_i> - V_i - 8|A|² over all simplices."""
    D = cover.points.shape[1]
    least = np.full(len(cover.corners), np.inf)
    for k in range(D + 1):
        corner = cover.corners[:, k]
        slope = np.zeros(len(corner))
        for d in range(D):
            slope += cover.places[:, d] * cover.points[corner, d]
        least = np.minimum(least, 16 * slope - cover.values[corner])
    return float((least - 8 * (cover.places**2).sum(axis=1)).min())


def check_tiling(points: Matrix, corners: Index, radius: float) -> None:
    """Raise unless simplices tile the cross-polytope.

    With the orientation of the space, every face must belong to two simplices on opposite sides,
    or lie on an outer face. The boundary of the sum of all simplices is then outside, and no
    simplex is flat, so that every point is covered.
    """
    D = points.shape[1]
    if corners.ndim != 2 or corners.shape[1] != D + 1 or len(corners) == 0:
        raise _refuse("the cover has no simplices of the right dimension")
    if not (corners.min() >= 0 and corners.max() < len(points)):
        raise _refuse("the cover has corners that are no points")
    if not (np.abs(points).sum(axis=1) <= radius * (1 + TOLERANCES.on_face)).all():
        raise _refuse("the cover has points outside the cross-polytope")
    if D == 0:
        return
    signs = orientations(points, corners)
    if not (signs != 0).all():
        raise _refuse("the cover has a flat simplex")
    order = np.argsort(corners, axis=1, kind="stable")
    ids = np.take_along_axis(corners, order, axis=1)
    signs = signs * _parities(order)
    faces = np.concatenate([np.delete(ids, k, axis=1) for k in range(D + 1)])
    sides = np.concatenate([signs * (1 - 2 * (k % 2)) for k in range(D + 1)])
    by_face = np.lexsort([faces[:, d] for d in reversed(range(D))])  # stable by definition
    faces, sides = faces[by_face], sides[by_face]
    is_first = np.concatenate([[True], (np.diff(faces, axis=0) != 0).any(axis=1)])
    starts = np.flatnonzero(is_first)
    counts = np.diff(np.concatenate([starts, [len(faces)]]))
    sums = np.add.reduceat(sides, starts)
    if not (counts <= 2).all() or (sums[counts == 2] != 0).any():
        raise _refuse("the simplices of the cover overlap, or lie on one side of a common face")
    outer = points[faces[starts[counts == 1]]].sum(axis=1)
    if not (np.abs(np.abs(outer).sum(axis=1) / radius - D) <= D * TOLERANCES.on_face).all():
        raise _refuse("the cover has a hole")


def _parities(order: Index) -> Index:
    """Return the signs of permutations."""
    sign = np.ones(len(order), dtype=np.int64)
    for i in range(order.shape[1]):
        for j in range(i + 1, order.shape[1]):
            sign = np.where(order[:, i] > order[:, j], -sign, sign)
    return sign


def orientations(points: Matrix, corners: Index) -> Index:
    """Return the signs of the determinants of simplices, exactly."""
    E = points[corners[:, 1:]] - points[corners[:, :1]]
    values, sizes = determinants(E), np.sqrt((E * E).sum(axis=2)).prod(axis=1)
    signs = np.sign(values).astype(np.int64)
    for k in np.flatnonzero(~(np.abs(values) > TOLERANCES.undecided * sizes)):
        signs[k] = exact_sign(points[corners[k]])
    return signs


def determinants(E: Matrix) -> Vector:
    """Return the determinants of matrices, by elimination with pivoting."""
    A, value = E.copy(), np.ones(len(E))
    each = np.arange(len(E))
    for k in range(E.shape[1]):
        pivot = k + np.abs(A[:, k:, k]).argmax(axis=1)
        rows = A[each, pivot].copy()
        A[each, pivot] = A[:, k]
        A[:, k] = rows
        head = A[:, k, k]
        value *= np.where(pivot == k, 1.0, -1.0) * head
        safe = np.where(head == 0, 1.0, head)
        A[:, k + 1 :] -= (A[:, k + 1 :, k] / safe[:, None])[:, :, None] * A[:, None, k]
    return value


def exact_sign(simplex: Matrix) -> int:
    """Return the sign of the determinant of a simplex in rational arithmetic."""
    rows = [[Fraction(x) for x in row] for row in simplex.tolist()]
    A = [[x - y for x, y in zip(row, rows[0], strict=True)] for row in rows[1:]]
    sign = 1
    for k in range(len(A)):
        pivot = next((i for i in range(k, len(A)) if A[i][k] != 0), None)
        if pivot is None:
            return 0
        if pivot != k:
            A[k], A[pivot], sign = A[pivot], A[k], -sign
        sign = sign if A[k][k] > 0 else -sign
        for i in range(k + 1, len(A)):
            factor = A[i][k] / A[k][k]
            A[i] = [x - factor * y for x, y in zip(A[i], A[k], strict=True)]
    return sign


# -- boxes -----------------------------------------------------------------------------------------


def check_box(problem: GromovProblem, low: Vector, high: Vector) -> None:
    """Raise unless a box holds all cross moments: coordinates sorted alike, and in reverse."""
    dy = problem.Y.shape[1]
    for k in range(low.size):
        x, y = problem.X[:, k // dy], problem.Y[:, k % dy]
        top, bottom = (_sorted_moment(sign * x, y, problem.p, problem.q) for sign in (1, -1))
        if not (low[k] <= -bottom and top <= high[k]):
            raise _refuse("the first box does not hold all cross moments")


def _sorted_moment(x: Vector, y: Vector, p: Vector, q: Vector) -> float:
    """Return Σ P_ij x_i y_j of the plan that couples both in their order."""
    order, other = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    x, y, p, q = x[order], y[other], p[order], q[other]
    ends = np.sort(np.concatenate([np.cumsum(p), np.cumsum(q)]), kind="stable")
    starts = np.concatenate([[0.0], ends[:-1]])
    middle = (starts + ends) / 2
    at = np.minimum(np.searchsorted(np.cumsum(p), middle), p.size - 1)
    to = np.minimum(np.searchsorted(np.cumsum(q), middle), q.size - 1)
    return float(((ends - starts) * x[at] * y[to]).sum())


def check_halving(cover: Boxes) -> None:
    """Raise unless the leaves arise from the first box by halving, and cover it.

    Each leaf is followed from the first box down. No leaf may be inside another, and the shares of
    the volume must sum to 1.
    """
    lows, highs = cover.lows[cover.leaves], cover.highs[cover.leaves]
    low = np.repeat(cover.lows[:1], len(lows), axis=0)
    high = np.repeat(cover.highs[:1], len(lows), axis=0)
    paths = [bytearray() for _ in range(len(lows))]
    active = np.arange(len(lows))
    while active.size:
        is_there = ((low[active] == lows[active]) & (high[active] == highs[active])).all(axis=1)
        active = active[~is_there]
        if not active.size:
            break
        k = (high[active] - low[active]).argmax(axis=1)
        middle = (low[active, k] + high[active, k]) / 2
        is_left, is_right = highs[active, k] <= middle, lows[active, k] >= middle
        if not (is_left ^ is_right).all():
            raise _refuse("the cover has a box that does not arise by halving")
        high[active[is_left], k[is_left]] = middle[is_left]
        low[active[is_right], k[is_right]] = middle[is_right]
        for leaf, side in zip(active.tolist(), is_right.tolist(), strict=True):
            paths[leaf].append(side)
    found = sorted(bytes(path) for path in paths)
    if any(longer.startswith(path) for path, longer in pairwise(found)):
        raise _refuse("the cover has overlapping boxes")
    deepest = max(len(path) for path in found)
    if sum(1 << (deepest - len(path)) for path in found) != 1 << deepest:
        raise _refuse("the boxes of the cover leave a hole")


def bound_of_boxes(cover: Boxes) -> float:
    """Return the least 8(|m|² - |w|²) - V(m) over the boxes that bound the leaves."""
    low, high = cover.lows[cover.sources], cover.highs[cover.sources]
    is_inside = (low <= cover.lows[cover.leaves]) & (cover.highs[cover.leaves] <= high)
    if not is_inside.all():
        raise _refuse("a box is bounded by one that does not contain it")
    middle, width = (low + high) / 2, (high - low) / 2
    bounds = 8 * (middle**2 - width**2).sum(axis=1) - cover.values[cover.sources]
    return float(bounds.min())
