r"""Distances between persistence diagrams: points may vanish into the diagonal at their own price.

.. math:: W_q(D_1, D_2)^q = \min_{\text{matchings}} \sum_{(x, y)} \|x - y\|_p^q
    + \sum_{\text{unmatched } x} \|x - Δ\|_p^q

An arc between x and y is of use only if it costs less than both their prices, so that most arcs of
most diagrams can be left out. Those that are left join points in components, which are solved one
by one, each in its own scale. If too many arcs are left, as between points far from the diagonal,
an auction searches them in trees instead. There the diagonal is a boundary, at a distance that is
a coordinate of each point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from .._types import Index, Matrix, Vector
from ..api.batch import solve_batch
from ..api.solve import solve
from ..arguments import numeric
from ..errors import InvalidProblem
from ..geometry import Geometry, PointCloud, Sparse
from ..geometry.extended import WithBoundary, extended
from ..metrics import MetricLike, NamedMetric, as_named
from ..wording import shown


@dataclass(frozen=True)
class PersistenceTuning:
    """Sizes at which distances of diagrams change how they are computed, and their accuracy."""

    # Most arcs that are listed, and per point in large diagrams; beyond, an auction searches them.
    max_arcs: int = 5_000_000
    max_arcs_per_point: int = 60
    min_searched_arcs: int = 500_000  # fewer are always listed
    sampled_points: int = 200  # whose arcs are counted first
    # Most rows, and columns, of a component that is solved in a batch of small problems.
    max_batched: int = 120
    max_stored: int = 4_000_000  # most entries of a component that is solved with a stored cost
    rtol: float = 1e-11  # relative gap to reach by default
    proved_gap: float = 1e-8  # of an auction's matching, which is optimal up to round-off


TUNING = PersistenceTuning()

#: By internal norm: the metric of diagrams, the metric of rotated diagrams, whose first coordinate
#: is the distance to the diagonal, and the factor of the rotation.
CLOUD_METRICS = {
    1.0: ("cityblock", "chebyshev", 1.0),
    2.0: ("euclidean", "euclidean", math.sqrt(0.5)),
    math.inf: ("chebyshev", "cityblock", 0.5),
}


class PersistenceDistance(float):
    """A distance of two diagrams: the number is an upper bound, ``lower`` a proved lower bound.

    ``matching`` has a row (i, j) for each point of the diagrams, where -1 stands for the diagonal;
    it is None if the problem was solved to a tolerance only.
    """

    lower: float
    matching: Index | None

    def __new__(cls, upper: float, lower: float, matching: Index | None) -> Self:
        """Return the upper bound, with the lower one and the matching."""
        self = super().__new__(cls, upper)
        self.lower, self.matching = min(lower, upper), matching
        return self

    @property
    def upper(self) -> float:
        """The cost of the matching, to the power 1 / order."""
        return float(self)

    @property
    def gap(self) -> float:
        """The difference of the bounds; 0 for two infinite ones."""
        return 0.0 if self.upper == self.lower else self.upper - self.lower

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the bounds too."""
        return PersistenceDistance, (float(self), self.lower, self.matching)


class PersistenceDistances(NamedTuple):
    """Distances of many diagrams: upper bounds, and proved lower bounds."""

    value: Matrix
    lower: Matrix


def persistence_distance(
    D1: Any,
    D2: Any = None,
    order: float = 1.0,
    internal_p: float = math.inf,
    *,
    rtol: float | None = None,
) -> PersistenceDistance | PersistenceDistances:
    """Return the Wasserstein distance of persistence diagrams, exact or to a proved accuracy.

    Parameters
    ----------
    D1, D2 : (n, 2) and (m, 2) array-like, or lists of them
        Births and deaths. Points with an infinite death (essential classes) are matched among
        themselves, and so are those with an infinite birth; if their numbers differ, the distance
        is infinite. Of lists, every pair is solved; without ``D2``, every pair of ``D1``.
    order : float
        The order q >= 1: costs are q-th powers, and the distance the q-th root of their sum.
    internal_p : float
        The norm p >= 1 of the plane, ``math.inf`` for the Chebyshev distance.
    rtol : float, optional
        Relative gap of the sum of costs. Default: exact.

    Returns
    -------
    PersistenceDistance or PersistenceDistances
        A float with ``lower``, ``gap`` and ``matching``; for lists two matrices, ``value`` and
        ``lower``.

    Examples
    --------
    >>> from epsilot.applications import persistence_distance
    >>> D1 = [[2.7, 3.7], [9.6, 14.0], [34.2, 34.974]]
    >>> D2 = [[2.8, 4.45], [9.5, 14.1]]
    >>> distance = persistence_distance(D1, D2, order=1)
    >>> round(distance, 12), distance.matching.tolist()
    (1.237, [[0, 0], [1, 1], [2, -1]])
    """
    order, internal_p = _exponent("order", order), _exponent("internal_p", internal_p)
    if order == math.inf:
        raise InvalidProblem(
            "order is inf; the bottleneck distance is no transport problem (pass a finite order)."
        )
    if D2 is not None and not _is_list(D1) and not _is_list(D2):
        return _distance(_diagram(D1, "D1"), _diagram(D2, "D2"), order, internal_p, rtol)
    first = [_diagram(D, f"D1[{k}]") for k, D in enumerate(_listed(D1, "D1"))]
    is_symmetric = D2 is None
    second = (
        first
        if is_symmetric
        else [_diagram(D, f"D2[{k}]") for k, D in enumerate(_listed(D2, "D2"))]
    )
    value, lower = np.zeros((2, len(first), len(second)))
    for i, one in enumerate(first):
        for j in range(i + 1 if is_symmetric else 0, len(second)):
            found = _distance(one, second[j], order, internal_p, rtol)
            value[i, j], lower[i, j] = found, found.lower
    if is_symmetric:
        value, lower = value + value.T, lower + lower.T
    return PersistenceDistances(value, lower)


# -- arguments ------------------------------------------------------------------------------------


def _exponent(name: str, value: object) -> float:
    """Return an exponent of at least 1, perhaps infinite."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not number >= 1:
        raise InvalidProblem(f"{name} is {shown(value)}; it must be a number >= 1.")
    return number


def _is_list(D: Any) -> bool:
    """Tell whether an argument holds several diagrams."""
    if getattr(D, "ndim", None) is not None:
        return bool(D.ndim == 3)
    return isinstance(D, (list, tuple)) and len(D) > 0 and np.ndim(D[0]) == 2


def _listed(D: Any, name: str) -> Sequence[Any]:
    """Return several diagrams, or reject a single one."""
    if not _is_list(D):
        raise InvalidProblem(
            f"{name} is one diagram and the other argument is a list, or missing; pass two "
            "diagrams, or lists of diagrams."
        )
    return list(D)


def _diagram(D: ArrayLike, name: str) -> Matrix:
    """Return a diagram as an (n, 2) array, or reject it."""
    points = numeric(D, name)
    points = points.reshape(0, 2) if points.size == 0 else points
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidProblem(
            f"{name} has shape {points.shape}; a diagram must have shape (n, 2), with a birth and "
            "a death per point."
        )
    is_good = points[:, 0] <= points[:, 1]
    is_good &= (points[:, 0] < math.inf) & (points[:, 1] > -math.inf)
    if not is_good.all():
        i = int(np.argmin(is_good))
        raise InvalidProblem(
            f"point {i} of {name} is ({points[i, 0]:g}, {points[i, 1]:g}); a birth must be a "
            "number that is not after its death (swap the columns, or repair the point)."
        )
    return points


# -- one distance ---------------------------------------------------------------------------------


class _Answer(NamedTuple):
    """Sums of costs, as terms that are added up exactly, and pairs of matched points."""

    upper: list[float]
    lower: list[float]
    pairs: list[tuple[Index, Index]] | None


def _distance(
    D1: Matrix, D2: Matrix, order: float, internal_p: float, rtol: float | None
) -> PersistenceDistance:
    """Return the distance of two checked diagrams."""
    terms: list[float] = []
    pairs: list[tuple[Index, Index]] = []
    for has_birth, has_death in ((True, False), (False, True), (False, False)):
        i, j = (_of_class(D, has_birth, has_death) for D in (D1, D2))
        if i.size != j.size:
            return PersistenceDistance(math.inf, math.inf, None)
        if has_birth or has_death:
            axis = 0 if has_birth else 1
            i, j = (k[np.argsort(D[k, axis], kind="stable")] for k, D in ((i, D1), (j, D2)))
            terms += (np.abs(D1[i, axis] - D2[j, axis]) ** order).tolist()
        pairs.append((i, j))
    rows, cols = (_of_class(D, True, True) for D in (D1, D2))
    rows, cols = (k[D[k, 0] < D[k, 1]] for k, D in ((rows, D1), (cols, D2)))
    found = _finite(D1[rows], D2[cols], order, internal_p, rtol)
    upper, lower = (math.fsum(terms + part) ** (1 / order) for part in (found.upper, found.lower))
    if found.pairs is None:
        return PersistenceDistance(upper, lower, None)
    pairs += [(rows[i], cols[j]) for i, j in found.pairs]
    return PersistenceDistance(upper, lower, _matching(pairs, len(D1), len(D2)))


def _of_class(D: Matrix, has_birth: bool, has_death: bool) -> Index:
    """Return the points with a finite birth, or death, or not."""
    is_finite = np.isfinite(D)
    return np.flatnonzero((is_finite[:, 0] == has_birth) & (is_finite[:, 1] == has_death))


def _matching(pairs: list[tuple[Index, Index]], n: int, m: int) -> Index:
    """Return rows (i, j) of matched points, then those of points on their own."""
    i, j = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    order = np.argsort(i, kind="stable")
    free = np.setdiff1d(np.arange(n), i), np.setdiff1d(np.arange(m), j)
    alone = np.full(free[0].size, -1), np.full(free[1].size, -1)
    return np.stack(
        [
            np.concatenate([i[order], free[0], alone[1]]),
            np.concatenate([j[order], alone[0], free[1]]),
        ],
        axis=1,
    )


def _prices(D: Matrix, order: float, internal_p: float) -> Vector:
    """Return the costs of vanishing: the distance to the diagonal, to the power of the order."""
    return ((D[:, 1] - D[:, 0]) * 2 ** (1 / internal_p - 1)) ** order


def _costs(X: Matrix, Y: Matrix, order: float, internal_p: float) -> Vector:
    """Return the costs of pairs of points."""
    steps = np.abs(X - Y)
    if internal_p == math.inf:
        lengths = np.maximum(steps[:, 0], steps[:, 1])
    elif internal_p == 1:
        lengths = steps[:, 0] + steps[:, 1]
    elif internal_p == 2:
        lengths = np.hypot(steps[:, 0], steps[:, 1])
    else:
        lengths = (steps**internal_p).sum(axis=1) ** (1 / internal_p)
    return lengths**order


def _finite(X: Matrix, Y: Matrix, order: float, internal_p: float, rtol: float | None) -> _Answer:
    """Match finite points off the diagonal with each other or with the diagonal."""
    prices = _prices(X, order, internal_p), _prices(Y, order, internal_p)
    if len(X) == 0 or len(Y) == 0:
        paid = np.concatenate(prices).tolist()
        return _Answer(paid, paid, [])
    is_searchable = internal_p in CLOUD_METRICS
    few = max(TUNING.max_arcs_per_point * (len(X) + len(Y)), TUNING.min_searched_arcs)
    most = min(few, TUNING.max_arcs) if is_searchable else TUNING.max_arcs
    arcs = _arcs(X, Y, prices, order, internal_p, most)
    if arcs is None and is_searchable:
        found, is_reached = _by_auction(X, Y, prices, order, internal_p, rtol)
        if is_reached:
            return found
        # One scale does not suit all points, but may suit each component.
        arcs = _arcs(X, Y, prices, order, internal_p, TUNING.max_arcs)
        if arcs is None:
            return found
    if arcs is None:
        raise InvalidProblem(
            f"the diagrams of {len(X):,} and {len(Y):,} points have more than {TUNING.max_arcs:,} "
            f"pairs that may be matched, and internal_p is {internal_p:g}; such diagrams need 1, 2 "
            "or math.inf."
        )
    return _by_components(*arcs, prices, rtol)


def _arcs(
    X: Matrix,
    Y: Matrix,
    prices: tuple[Vector, Vector],
    order: float,
    internal_p: float,
    most: int,
) -> tuple[Index, Index, Vector] | None:
    """Return the arcs that cost less than both ends, and their costs; None beyond ``most``.

    Targets are taken by the powers of two of their prices, so that one radius fits all of them.
    """
    levels = np.frexp(prices[1])[1]
    groups = [np.flatnonzero(levels == level) for level in np.unique(levels)]
    trees = [cKDTree(Y[group]) for group in groups]
    largest = [float(prices[1][group].max()) for group in groups]

    def radii(rows: Index | slice, k: int) -> Vector:
        return (prices[0][rows] + largest[k]) ** (1 / order) * (1 + 1e-9)

    def counts_of(rows: Index | slice, k: int) -> Index:
        found = trees[k].query_ball_point(X[rows], radii(rows, k), internal_p, return_length=True)
        return np.asarray(found)

    sample = np.arange(0, len(X), max(1, len(X) // TUNING.sampled_points))
    seen = sum(int(counts_of(sample, k).sum()) for k in range(len(groups)))
    if seen * len(X) > most * sample.size:
        return None
    every, total = slice(None), 0
    parts: list[tuple[Index, Index]] = []
    for k, group in enumerate(groups):
        counts = counts_of(every, k)
        total += int(counts.sum())
        if total > most:
            return None
        near = trees[k].query_ball_point(X, radii(every, k), internal_p, return_sorted=False)
        cols = np.fromiter((j for js in near for j in js), np.int64, int(counts.sum()))
        parts.append((np.repeat(np.arange(len(X)), counts), group[cols]))
    i, j = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    costs = _costs(X[i], Y[j], order, internal_p)
    is_useful = costs < prices[0][i] + prices[1][j]
    return i[is_useful], j[is_useful], costs[is_useful]


# -- components -----------------------------------------------------------------------------------


class _Component(NamedTuple):
    """Points of a component, and its arcs by the places of their ends among them."""

    rows: Index
    cols: Index
    i: Index
    j: Index
    costs: Vector

    def matrix(self, prices: tuple[Vector, Vector]) -> Matrix:
        """Return the costs, with the diagonal last on both sides; others are those of vanishing."""
        of_rows, of_cols = prices[0][self.rows], prices[1][self.cols]
        C = np.append(of_rows[:, None] + of_cols, of_rows[:, None], axis=1)
        C[self.i, self.j] = self.costs
        return np.append(C, [np.append(of_cols, 0.0)], axis=0)

    def geometry(self, prices: tuple[Vector, Vector]) -> Geometry:
        """Return the costs of the arcs alone, with the diagonal last on both sides."""
        inner = Sparse(self.i, self.j, self.costs, (self.rows.size, self.cols.size))
        return extended(inner, prices[0][self.rows], prices[1][self.cols], 0.0)

    @property
    def is_star(self) -> bool:
        """Whether all arcs meet in one point, so that at most one of them is used."""
        return min(self.rows.size, self.cols.size) == 1

    @property
    def masses(self) -> tuple[Vector, Vector]:
        """One per point; the diagonal has as many as the other side."""
        n, m = self.rows.size, self.cols.size
        return np.append(np.ones(n), m), np.append(np.ones(m), n)


def _by_components(
    i: Index, j: Index, costs: Vector, prices: tuple[Vector, Vector], rtol: float | None
) -> _Answer:
    """Solve every component of the arcs by itself."""
    n, m = prices[0].size, prices[1].size
    answer = _Answer([], [], [])
    assert answer.pairs is not None
    components = _components(i, j, costs, n, m)
    in_arcs = (
        np.concatenate([c.rows for c in components]) if components else np.empty(0, np.int64),
        np.concatenate([c.cols for c in components]) if components else np.empty(0, np.int64),
    )
    for price, used in zip(prices, in_arcs, strict=True):
        alone = np.delete(price, used).tolist()
        answer.upper.extend(alone)
        answer.lower.extend(alone)
    for component in components:
        if component.is_star:
            _add_star(answer, component, prices)
    components = [c for c in components if not c.is_star]
    small = [c for c in components if max(c.rows.size, c.cols.size) <= TUNING.max_batched]
    if small:
        matrices = [c.matrix(prices) for c in small]
        masses = [c.masses for c in small]
        a, b = [p for p, _ in masses], [q for _, q in masses]
        batch = solve_batch(matrices, a, b, rtol=rtol or TUNING.rtol, plans=True)
        assert batch.plans is not None
        for k, component in enumerate(small):
            flows = batch.plans[k].toarray()
            _add(
                answer, component, prices, flows, float(batch.value[k]), float(batch.lower_bound[k])
            )
    for component in components:
        if max(component.rows.size, component.cols.size) <= TUNING.max_batched:
            continue
        is_stored = component.rows.size * component.cols.size <= TUNING.max_stored
        M = component.matrix(prices) if is_stored else component.geometry(prices)
        found = solve(M, *component.masses, rtol=rtol or TUNING.rtol)
        flows = found.plan_operator.tosparse(0.5)
        _add(answer, component, prices, flows, found.value, found.lower_bound)
    return answer


def _components(i: Index, j: Index, costs: Vector, n: int, m: int) -> list[_Component]:
    """Return the components of the arcs."""
    if i.size == 0:
        return []
    graph = coo_array((np.ones(i.size), (i, n + j)), shape=(n + m, n + m))
    labels = connected_components(graph, directed=False)[1]
    place = np.empty(n + m, dtype=np.int64)
    of_arcs = labels[i]
    order = np.argsort(of_arcs, kind="stable")
    starts = np.flatnonzero(np.diff(of_arcs[order], prepend=-1))
    found = []
    for group in np.split(order, starts[1:]):
        rows, cols = np.unique(i[group]), np.unique(j[group])
        place[rows], place[n + cols] = np.arange(rows.size), np.arange(cols.size)
        found.append(_Component(rows, cols, place[i[group]], place[n + j[group]], costs[group]))
    return found


def _add_star(answer: _Answer, component: _Component, prices: tuple[Vector, Vector]) -> None:
    """Add the answer of a star: its arc that saves most; every arc saves something."""
    assert answer.pairs is not None
    rows, cols = component.rows, component.cols
    i, j = rows[component.i], cols[component.j]
    best = int(np.argmin((component.costs - prices[0][i]) - prices[1][j]))
    paid = [
        float(component.costs[best]),
        *prices[0][rows[rows != i[best]]].tolist(),
        *prices[1][cols[cols != j[best]]].tolist(),
    ]
    answer.upper.extend(paid)
    answer.lower.extend(paid)
    answer.pairs.append((i[best : best + 1], j[best : best + 1]))


def _add(
    answer: _Answer,
    component: _Component,
    prices: tuple[Vector, Vector],
    flows: Any,
    value: float,
    lower: float,
) -> None:
    """Add the answer of a component: the cost of its matching, if its flows are one."""
    assert answer.pairs is not None
    n, m = component.rows.size, component.cols.size
    flows = flows[:n, :m] if not hasattr(flows, "tocsr") else flows.tocsr()[:n, :m].tocoo()
    i, j = flows.coords if hasattr(flows, "coords") else np.nonzero(flows > 0.5)
    is_matching = np.unique(i).size == i.size and np.unique(j).size == j.size
    known = coo_array((component.costs, (component.i, component.j)), shape=(n, m)).tocsr()
    has_arc = coo_array(
        (np.ones(component.i.size), (component.i, component.j)), shape=(n, m)
    ).tocsr()
    kept = np.asarray(has_arc[i, j]).ravel() > 0  # other pairs vanish at the same cost
    i, j = np.asarray(i)[kept], np.asarray(j)[kept]
    if is_matching:
        paid = [
            *np.asarray(known[i, j]).ravel().tolist(),
            *np.delete(prices[0][component.rows], i).tolist(),
            *np.delete(prices[1][component.cols], j).tolist(),
        ]
        value = min(math.fsum(paid), value) if not math.isfinite(value) else math.fsum(paid)
    answer.upper.append(value)
    answer.lower.append(max(min(lower, value), 0.0))
    answer.pairs.append((component.rows[i], component.cols[j]))


# -- too many arcs to list ------------------------------------------------------------------------


def _by_auction(
    X: Matrix,
    Y: Matrix,
    prices: tuple[Vector, Vector],
    order: float,
    internal_p: float,
    rtol: float | None,
) -> tuple[_Answer, bool]:
    """Solve on point clouds with the diagonal as a boundary; tell whether the goal was reached."""
    own, rotated, factor = CLOUD_METRICS[internal_p]
    turned_x, turned_y = (
        np.stack([D[:, 1] - D[:, 0], D.sum(axis=1)], axis=1) * factor for D in (X, Y)
    )
    metric = as_named(_power(rotated, order)).compiled()
    assert metric is not None
    points = WithBoundary.placed(turned_x, turned_y, metric)
    geometry = WithBoundary(PointCloud(X, Y, _power(own, order)), *prices, points)
    n, m = len(X), len(Y)
    masses = np.append(np.ones(n), m), np.append(np.ones(m), n)
    goal = rtol or TUNING.rtol
    found = solve(geometry, *masses, method="auction", rtol=goal, on_limit="ignore")
    # A point that sends more than half of its mass to another one is matched with it.
    i, j = (np.asarray(k) for k in found.plan_operator.tosparse(0.5).tocoo().coords)
    is_pair = (i < n) & (j < m)
    i, j = i[is_pair], j[is_pair]
    costs = _costs(X[i], Y[j], order, internal_p)
    is_useful = costs < prices[0][i] + prices[1][j]
    i, j, costs = i[is_useful], j[is_useful], costs[is_useful]
    paid = [*costs.tolist(), *np.delete(prices[0], i).tolist(), *np.delete(prices[1], j).tolist()]
    value, lower = math.fsum(paid), found.lower_bound
    is_near = value - lower <= (rtol or TUNING.proved_gap) * value
    if is_near or not rtol:
        return _Answer(paid, [min(lower, value)], [(i, j)]), is_near
    return _Answer([found.value], [lower], None), found.gap <= rtol * found.value


def _power(name: str, order: float) -> MetricLike:
    """Return a power of a metric."""
    if (name, order) == ("euclidean", 2.0):
        return "sqeuclidean"
    return name if order == 1 else NamedMetric(name, order)
