"""Values of stacked transport problems, their gradients, and partners of points.

A value is a minimum over plans. So its derivative in all that the cost depends on is that of the
cost at the optimal plan (Danskin 1967), and its derivative in the weights comes from the dual
potentials. This holds for every kind of problem. With a plan that is optimal within ε, these are
derivatives of an upper and a lower bound that differ by ε.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, NamedTuple, Self, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse

from .. import parallel
from .._types import Array, Index, Matrix, Potentials, Vector
from ..api.batch import solve_batch, solve_sample_batch
from ..api.solve import solve
from ..arguments import check_positive, is_real, plain
from ..engine.batch.engine import BatchGoal, solve_packed
from ..engine.batch.problems import StackSource, batch_key, flat
from ..engine.batch.result import BatchResult, Plans
from ..engine.goal import EXACT_RTOL
from ..engine.request import Request
from ..engine.result import Result
from ..errors import InvalidProblem
from ..geometry import Dense, Geometry, PointCloud
from ..geometry.inputs import cloud_geometry
from ..kernels.forest import binned_rows
from ..kernels.points import cloud_costs
from ..kernels.products import product, squared_distances
from ..kernels.small_simplex import is_small
from ..kernels.vectors import log
from ..metrics import LOSS_METRICS, METRICS
from ..problems.duals import centred
from ..problems.plan import Arcs, Plan
from ..problems.work import Status
from ..wording import shown
from .entropic_starts import newton_potentials, shared_potential


@dataclass(frozen=True)
class LossTuning:
    """Default accuracy of losses, and sizes at which they change how they compute."""

    default_rtol: float = 1e-6  # default relative gap; at this gap most solutions are exact
    # Default entropic gap, as a share of the largest cost; gradients err by its square root.
    default_tol_share: float = 1e-9
    # Rows and columns up to which balanced entropic problems start from Newton's method.
    max_newton_start_rows: int = 2048
    # Coordinates from which on squared distances come from inner products.
    min_product_coordinates: int = 16
    # Epochs of Sinkhorn's algorithm after which ``box_newton`` continues, and its largest problem.
    max_sinkhorn_epochs: int = 300
    max_box_newton_rows: int = 1000


TUNING = LossTuning()


class StackAnswers(NamedTuple):
    """The answers to k problems of one shape."""

    value: Vector  # (k,)
    gap: Vector  # (k,)
    f: Matrix  # (k, n)
    g: Matrix  # (k, m)
    plans: Plans | Sequence[Plan]  # sparse plans of a batch, or those of single runs
    #: Slopes in both weights, for problems whose weights need no equal totals.
    free_slopes: Sequence[Potentials] | None = None


class Outcome(NamedTuple):
    """Values, gaps and potentials of k problems, and the slopes that the caller wants.

    ``slopes`` has one entry for each argument: an array of its shape, or None.
    """

    value: Vector
    gap: Vector
    f: Matrix
    g: Matrix
    slopes: tuple[Array | None, ...]


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """The keywords of every problem; hashable, as static arguments of JAX must be."""

    eps: float | None = None
    rtol: float | None = None
    reg: float | None = None
    tol: float | None = None
    mass: float | None = None
    unbalanced: float | tuple[Any, ...] | None = None
    unbalanced_type: str = "kl"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("eps", "rtol", "reg", "tol", "mass", "unbalanced", "n_threads"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        object.__setattr__(self, "unbalanced", _hashable(self.unbalanced))
        if self.unbalanced in (math.inf, (math.inf, math.inf)):  # both marginals are exact
            object.__setattr__(self, "unbalanced", None)
            object.__setattr__(self, "unbalanced_type", "kl")

    @classmethod
    def of_call(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the loss of a function's arguments by name; others than keywords are left out."""
        return cls(**{x.name: arguments[x.name] for x in fields(cls) if x.name in arguments})

    @abstractmethod
    def __call__(self, parts: Sequence[Array | None], wanted: Sequence[bool]) -> Outcome:
        """Solve problems whose parts are stacked along a first axis.

        Parameters
        ----------
        parts : arrays
            The points or costs, then the weights a and b, or None for uniform weights.
        wanted : sequence of bool
            Whether to return the slopes in each of them.
        """

    @staticmethod
    @abstractmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return n and m of the problems, from the shapes of the parts that are given."""

    def check(self) -> None:
        """Reject keywords that no problem can be solved with."""
        names = ("eps", "rtol", "reg", "tol", "n_threads")
        Request.of({name: getattr(self, name) for name in names} | self._kind_keywords)

    @property
    def _kind_keywords(self) -> dict[str, Any]:
        """The keywords of the kind of problem."""
        names = ("mass", "unbalanced", "unbalanced_type")
        return {name: getattr(self, name) for name in names}

    @property
    def is_balanced(self) -> bool:
        """Whether plans have the marginals a and b."""
        return self.mass is None and self.unbalanced is None and self.unbalanced_type == "kl"

    @property
    def _is_batched(self) -> bool:
        """Whether the compiled solver of batches takes the problems."""
        return self.is_balanced and self.reg is None and self.tol is None

    @property
    def _batch_keywords(self) -> dict[str, Any]:
        """The keywords of the batch."""
        return {"eps": self.eps, "rtol": self._relative_gap, "n_threads": self.n_threads}

    @property
    def _relative_gap(self) -> float | None:
        """The relative gap to reach, if no other accuracy is given."""
        is_open = self.eps is None and self.rtol is None and self.reg is None
        return TUNING.default_rtol if is_open else self.rtol

    def _one_by_one(
        self, geometries: Sequence[Geometry], a: Array | None, b: Array | None
    ) -> StackAnswers:
        """Solve problems that go through ``solve``: entropic, partial or unbalanced ones."""
        self.check()
        solve_one = self._solve_entropic if self.is_balanced else self._solve_free
        results = []
        for k, geometry in enumerate(geometries):
            try:
                results.append(solve_one(geometry, *_weights_of(k, a, b)))
            except InvalidProblem as error:
                raise _numbered(error, k, len(geometries)) from None
        if self.is_balanced:
            return _stacked(results)
        slopes = [result.gradients()[:2] for result in results]
        return _stacked(results)._replace(free_slopes=slopes)

    def _solve_free(self, geometry: Geometry, a: Array | None, b: Array | None) -> Result:
        """Solve one partial or unbalanced problem."""
        result = solve(
            geometry,
            a,
            b,
            eps=self.eps,
            rtol=self._relative_gap,
            reg=self.reg,
            tol=self._tolerance(geometry, a, b),
            n_threads=self.n_threads,
            **self._kind_keywords,
        )
        return _uninterrupted(result)

    def _solve_entropic(
        self,
        geometry: Geometry,
        a: Array | None,
        b: Array | None,
        start: Potentials | None = None,
    ) -> Result:
        """Solve one balanced entropic problem; Newton's method helps where Sinkhorn's is slow."""
        tol = self._tolerance(geometry, a, b)
        asked: dict[str, Any] = {
            "eps": self.eps,
            "rtol": self.rtol,
            "reg": self.reg,
            "tol": tol,
            "n_threads": self.n_threads,
        }
        is_small, is_startable = (
            max(geometry.shape) <= n
            for n in (TUNING.max_box_newton_rows, TUNING.max_newton_start_rows)
        )
        if start is None and is_startable and _is_positive(self.reg) and _is_positive(tol):
            with parallel.limit(self.n_threads):
                start = newton_potentials(geometry, a, b, float(self.reg), float(tol))
        limits: dict[str, Any] = {}
        if is_small:
            limits = {"max_iter": TUNING.max_sinkhorn_epochs, "on_limit": "ignore"}
        result = solve(geometry, a, b, potentials_init=start, **asked, **limits)
        if is_small and result.status is Status.MAX_ITER:
            f, g = (np.where(np.isfinite(z), z, 0.0) for z in result.potentials)
            result = solve(geometry, a, b, potentials_init=(f, g), method="box_newton", **asked)
        return _uninterrupted(result)

    def _tolerance(self, geometry: Geometry, a: Array | None, b: Array | None) -> float | None:
        """Return the entropic gap to reach."""
        if self.tol is not None or not is_real(self.reg):
            return self.tol
        weights = b if a is None else a
        mass = 1.0 if weights is None else float(weights.sum())
        size = max(*map(abs, geometry.bounds), float(self.reg))
        return TUNING.default_tol_share * size * mass or None

    def _weight_slopes(
        self, solved: StackAnswers, a: Array | None, b: Array | None, wanted: Sequence[bool]
    ) -> tuple[Matrix | None, Matrix | None]:
        """Return the slopes in a and b that the caller wants."""
        if not any(wanted):
            return None, None
        are_given = a is not None, b is not None
        if solved.free_slopes is None:
            pairs = [
                weight_slopes(f, g, self.reg or 0.0, are_given=are_given)
                for f, g in zip(solved.f, solved.g, strict=True)
            ]
        else:
            pairs = [free_weight_slopes(*pair, are_given=are_given) for pair in solved.free_slopes]
        da, db = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        return da if wanted[0] else None, db if wanted[1] else None


@dataclass(frozen=True, kw_only=True)
class CloudLoss(Loss):
    """Transport between point clouds: parts x (k, n, d), y (k, m, d), a, b."""

    metric: str = "sqeuclidean"
    #: Whether the entropy is that relative to a ⊗ b, reg KL(X | a ⊗ b) instead of -reg H(X). They
    #: differ by a constant in balanced problems, and then need not be told apart.
    is_relative: bool = False

    @staticmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return the numbers of points."""
        return shapes[0][-2], shapes[1][-2]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.metric, str) and self.metric in LOSS_METRICS):
            raise InvalidProblem(
                f"metric is {shown(self.metric)}; it must be one of {', '.join(LOSS_METRICS)} "
                "(for others pass the cost, as a differentiable matrix, to transport_cost_matrix)."
            )

    def __call__(self, parts: Sequence[Array | None], wanted: Sequence[bool]) -> Outcome:
        """Solve, and return slopes in points and weights."""
        x, y, a, b = parts
        assert x is not None
        assert y is not None
        solved = self.solve(x, y, a, b)
        dx = dy = None
        if any(wanted[:2]):
            dx, dy = self._point_slopes(solved.plans, x, y)
        slopes = dx, dy, *self._weight_slopes(solved, a, b, wanted[2:])
        return Outcome(*solved[:4], slopes)

    def _point_slopes(
        self, plans: Plans | Sequence[Plan], x: Array, y: Array
    ) -> tuple[Matrix, Matrix]:
        """Return the slopes in stacked clouds; sparse plans are those of one large problem."""
        X, Y = (np.asarray(z, np.float64) for z in (x, y))
        if isinstance(plans, Plans):
            x, y = (z.reshape(-1, z.shape[-1]) for z in (X, Y))
            dx, dy = point_slopes(_side_by_side(plans), x, y, self.metric)
            return dx.reshape(X.shape), dy.reshape(Y.shape)
        pairs = [point_slopes(plan, X[k], Y[k], self.metric) for k, plan in enumerate(plans)]
        return np.array([dx for dx, _ in pairs]), np.array([dy for _, dy in pairs])

    def solve(self, x: Array, y: Array, a: Array | None, b: Array | None) -> StackAnswers:
        """Solve the problems of stacked clouds."""
        if self.is_relative:
            problems = ((x[k], y[k], *_weights_of(k, a, b)) for k in range(len(x)))
            return _joined_answers([self._solve_relative(*problem) for problem in problems])
        if self._is_batched:
            keywords = {"metric": self.metric, **self._batch_keywords}
            return from_batch(_collected(solve_sample_batch, x, y, a, b, **keywords))
        return self._one_by_one(
            [cloud_geometry(*z, self.metric) for z in zip(x, y, strict=True)], a, b
        )

    def _solve_relative(
        self, x: Matrix, y: Matrix, a: Vector | None, b: Vector | None
    ) -> StackAnswers:
        r"""Solve one unbalanced problem whose entropy is relative to a ⊗ b.

        It is the problem with the costs :math:`C_{ij} - reg (1 + \log a_i + \log b_j)` and the
        plain entropy, except for the constant reg Σa Σb. Points without mass are left out.
        """
        reg = float(check_positive("reg", self.reg))
        n, m = len(x), len(y)
        a = np.full(n, 1 / n) if a is None else np.asarray(a, np.float64)
        b = np.full(m, 1 / m) if b is None else np.asarray(b, np.float64)
        rows, cols = np.flatnonzero(a), np.flatnonzero(b)
        C = cloud_geometry(x, y, self.metric).matrix()[np.ix_(rows, cols)]
        shifted = C - reg * (1 + log(a[rows])[:, None] + log(b[cols]))
        result = self._solve_free(Dense(shifted), a[rows], b[cols])
        (da, db, plan), (f, g) = result.gradients(), result.potentials
        r, c = plan.marginals()
        arcs = Arcs.of(plan.tosparse())
        slopes = da - reg * r / a[rows], db - reg * c / b[cols]  # the costs depend on weights too
        return StackAnswers(
            np.array([result.value]),
            np.array([result.gap]),
            _filled(f, rows, n)[None],
            _filled(g, cols, m)[None],
            [Plan(Arcs((n, m), rows[arcs.i], cols[arcs.j], arcs.flow))],
            [(_filled(slopes[0], rows, n), _filled(slopes[1], cols, m))],
        )


def _hashable(penalty: Any) -> Any:
    """Return penalties of lists and arrays as tuples."""
    if isinstance(penalty, (list, tuple)) or getattr(penalty, "ndim", 0) > 0:
        return tuple(_hashable(plain(x)) for x in penalty)
    return penalty


def _filled(values: Vector, places: Index, size: int) -> Vector:
    """Return values at their places of a vector, and their mean at the other ones."""
    out = np.full(size, values.mean())
    out[places] = values
    return out


@dataclass(frozen=True, kw_only=True)
class SelfLoss(CloudLoss):
    """Entropic transport of clouds to themselves: parts x (k, n, d), a."""

    @staticmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return the number of points, twice."""
        return shapes[0][-2], shapes[0][-2]

    def __call__(self, parts: Sequence[Array | None], wanted: Sequence[bool]) -> Outcome:
        """Solve, and return slopes in the points and the weights of both sides at once."""
        x, a = parts
        assert x is not None
        found = super().__call__((x, x, a, a), (wanted[0], wanted[0], wanted[1], wanted[1]))
        dx, dy, da, db = found.slopes
        slopes = (None if p is None or q is None else p + q for p, q in ((dx, dy), (da, db)))
        return found._replace(slopes=tuple(slopes))

    def solve(self, x: Array, y: Array, a: Array | None, b: Array | None) -> StackAnswers:
        """Solve each problem from the potential that both sides share."""
        if self.is_relative:
            return super().solve(x, y, a, b)
        results = []
        for k, cloud in enumerate(x):
            geometry = cloud_geometry(cloud, cloud, self.metric)
            weights, start = _weights_of(k, a, b), None
            if _is_positive(self.reg):
                with parallel.limit(self.n_threads):
                    f = shared_potential(geometry, weights[0], float(self.reg))
                start = f, f
            results.append(self._solve_entropic(geometry, *weights, start))
        return _stacked(results)


@dataclass(frozen=True, kw_only=True)
class MatrixLoss(Loss):
    """Transport with given costs: parts M (k, n, m), a, b."""

    @staticmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return the shape of a cost."""
        return shapes[0][-2], shapes[0][-1]

    def __call__(self, parts: Sequence[Array | None], wanted: Sequence[bool]) -> Outcome:
        """Solve, and return slopes in costs (the plans) and weights."""
        M, a, b = parts
        assert M is not None
        solved = self.solve(M, a, b)
        dM = np.array([plan.toarray() for plan in solved.plans]) if wanted[0] else None
        return Outcome(*solved[:4], (dM, *self._weight_slopes(solved, a, b, wanted[1:])))

    def solve(self, M: Array, a: Array | None, b: Array | None) -> StackAnswers:
        """Solve the problems of stacked costs."""
        if self._is_batched:
            return from_batch(_collected(solve_batch, M, a, b, **self._batch_keywords))
        return self._one_by_one([Dense(C) for C in M], a, b)


def _joined_answers(parts: Sequence[StackAnswers]) -> StackAnswers:
    """Return the answers of single problems as those of one stack."""
    return StackAnswers(
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.gap for part in parts]),
        np.concatenate([part.f for part in parts]),
        np.concatenate([part.g for part in parts]),
        [plan for part in parts for plan in part.plans],
        [pair for part in parts for pair in part.free_slopes or ()],
    )


def check_held(z: Array | None, dtype: object, largest: float) -> None:
    """Reject numbers that would become infinite in the type of the caller."""
    size = 0.0 if z is None else float(np.max(np.abs(z), where=np.isfinite(z), initial=0.0))
    if size > largest:
        raise InvalidProblem(
            f"the answer reaches {size:.3g}, beyond the range of {dtype}; pass arrays of float64, "
            "or divide the costs (or all points) by one number."
        )


def _is_positive(x: float | None) -> TypeGuard[float]:
    """Tell whether a number is positive and finite; ``solve`` rejects other values later."""
    return is_real(x) and 0 < x < np.inf


def _weights_of(k: int, a: Array | None, b: Array | None) -> tuple[Array | None, Array | None]:
    """Return the weights of problem k."""
    return None if a is None else a[k], None if b is None else b[k]


def _numbered(error: InvalidProblem, k: int, size: int) -> InvalidProblem:
    """Return the refusal of one of many problems, which names its number."""
    return error if size == 1 else InvalidProblem(f"problem {k}: {error}")


def _uninterrupted(result: Result) -> Result:
    """Return a result unless Ctrl-C ended its run: a training loop must not continue with it."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _collected(solve_all: Any, *parts: Array | None, **keywords: Any) -> BatchResult:
    """Solve a batch with plans and potentials; raise if a problem was refused."""
    batch: BatchResult = solve_all(
        *parts, plans=True, potentials=True, on_error="collect", **keywords
    )
    for k, sentence in batch.errors.items():
        raise _numbered(InvalidProblem(sentence), k, len(batch))
    if not batch.is_complete or Status.INTERRUPTED in batch.status:
        raise KeyboardInterrupt
    return batch


def from_batch(batch: BatchResult) -> StackAnswers:
    """Return the answers of a batch of one shape."""
    assert batch.plans is not None
    assert batch.potentials is not None
    k = len(batch)
    f, g = (x.reshape(k, -1) for x in (batch.potentials.f, batch.potentials.g))
    return StackAnswers(batch.value, batch.gap, f, g, batch.plans)


def _side_by_side(plans: Plans) -> Arcs:
    """Return the arcs of plans of one shape as those of one block-diagonal plan."""
    (n, m), k = plans.shapes[0], len(plans)
    of = np.repeat(np.arange(k), np.diff(plans.starts))
    return Arcs((int(k * n), int(k * m)), plans.i + n * of, plans.j + m * of, plans.flow)


def _stacked(results: Sequence[Result]) -> StackAnswers:
    """Return the answers of single runs."""
    value, gap = (np.array([getattr(r, name) for r in results]) for name in ("value", "gap"))
    f, g = (np.array([r.potentials[side] for r in results]) for side in (0, 1))
    return StackAnswers(value, gap, f, g, [r.plan_operator for r in results])


# -- slopes in points ----------------------------------------------------------------------------

#: A plan, or some of its rows: a few arcs of a simplex method, or all entries of an entropic plan.
Flow: TypeAlias = Arcs | Matrix


def point_slopes(plan: Plan | Arcs, x: Matrix, y: Matrix, metric: str) -> tuple[Matrix, Matrix]:
    r"""Return the slopes of <C(x, y), X> in both clouds.

    .. math:: \partial_{x_i} = \sum_j X_{ij} \nabla_x c(x_i, y_j)

    Where a metric has a kink (coincident points, or coordinates for the city block) the slope of
    the pair is taken to be 0, which is one of its subgradients.

    Parameters
    ----------
    plan : Plan or Arcs
    x, y : (n, d), (m, d) arrays
    metric : str
        A name of ``epsilot.metrics.LOSS_METRICS``.
    """
    row = METRICS[metric]
    middle = np.zeros(x.shape[1]) if row.degree == 0 else x.mean(axis=0)
    x, y = x - middle, y - middle  # digits that points far from the origin would lose
    dx, dy = np.empty_like(x), np.zeros_like(y)
    for start, X in _parts(plan):
        rows = slice(start, start + X.shape[0])
        dx[rows], more = _slopes(X, x[rows], y, metric)
        dy += more
    return dx, dy


def _parts(plan: Plan | Arcs) -> Iterator[tuple[int, Flow]]:
    """Yield (first row, rows) of a plan: all at once if it has few arcs, else in blocks."""
    if isinstance(plan, Plan):
        yield from plan.blocks()
    else:
        yield 0, plan


def _slopes(X: Flow, x: Matrix, y: Matrix, metric: str) -> tuple[Matrix, Matrix]:
    """Return the slopes of some rows, and their contributions to those of the columns."""

    @cache
    def cost() -> Matrix:
        cloud = PointCloud(x, y, metric)
        return cloud.matrix() if isinstance(X, np.ndarray) else cloud.entries(X.i, X.j)

    tension, slope = METRICS[metric].tension, METRICS[metric].slope
    if tension is not None:
        return _by_differences(_with_flow(X, lambda flow: tension(flow, cost)), x, y)
    if slope is not None:
        return _by_axes(X, x, y, lambda difference: slope(difference, cost))
    return _by_angles(X, x, y)


def _with_flow(X: Flow, change: Callable[[Matrix], Matrix]) -> Flow:
    """Return a plan with its entries changed."""
    return change(X) if isinstance(X, np.ndarray) else replace(X, flow=change(X.flow))


def _by_differences(W: Flow, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    """Return Σ_j W_ij (x_i - y_j), and its negative over i."""
    r, c = (W.sum(axis=1), W.sum(axis=0)) if isinstance(W, np.ndarray) else W.marginals()
    return r[:, None] * x - _rows(W, y), c[:, None] * y - _cols(W, x)


def _by_angles(X: Flow, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    """Return the slopes of 1 - cos."""
    (u, r), (v, s) = _polar(x), _polar(y)
    return _across(_rows(X, v), u) / -r, _across(_cols(X, u), v) / -s


def _across(p: Matrix, unit: Matrix) -> Matrix:
    """Return the component of each vector that is orthogonal to its unit vector."""
    return np.asarray(p - (p * unit).sum(axis=1, keepdims=True) * unit)


def _polar(x: Matrix) -> tuple[Matrix, Matrix]:
    """Return directions and lengths."""
    length = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return x / length, length


def _by_axes(
    X: Flow, x: Matrix, y: Matrix, slope: Callable[[Matrix], Matrix]
) -> tuple[Matrix, Matrix]:
    """Return Σ_j X_ij slope(x_i - y_j), axis by axis, and its negative over i."""
    dx, dy = np.empty_like(x), np.empty_like(y)
    for k in range(x.shape[1]):
        if isinstance(X, np.ndarray):
            signed = X * slope(x[:, k, None] - y[:, k])
            dx[:, k], dy[:, k] = signed.sum(axis=1), -signed.sum(axis=0)
        else:
            pulled = replace(X, flow=X.flow * slope(x[X.i, k] - y[X.j, k]))
            dx[:, k], back = pulled.marginals()
            dy[:, k] = -back
    return dx, dy


def _rows(W: Flow, V: Matrix) -> Matrix:
    """Return W V."""
    if isinstance(W, np.ndarray):
        return product(np.ascontiguousarray(W), np.ascontiguousarray(V))
    return _carried(W.i, W.flow, W.j, V, W.shape[0])


def _cols(W: Flow, U: Matrix) -> Matrix:
    """Return Wᵀ U."""
    if isinstance(W, np.ndarray):
        return product(np.ascontiguousarray(W.T), np.ascontiguousarray(U))
    return _carried(W.j, W.flow, W.i, U, W.shape[1])


def _carried(places: Index, flow: Vector, others: Index, X: Matrix, size: int) -> Matrix:
    """Return the sums of flow times rows of X over the arcs of each place."""
    out = np.empty((size, X.shape[1]))
    binned_rows(places, flow, others, np.ascontiguousarray(X), out)
    return out


# -- slopes in weights ---------------------------------------------------------------------------


def weight_slopes(
    f: Vector, g: Vector, reg: float, *, are_given: tuple[bool, bool]
) -> tuple[Vector, Vector]:
    """Return the slopes of the value in weights of equal totals.

    They are the potentials up to a constant, which matters only where the common total changes.
    Then the value grows by f + g (with ``reg``: + reg, as X log X has the slope log X + 1). Both
    slopes get half of the constant. Weights that were not given are uniform with the total of the
    others, so the given ones get the whole constant.

    Parameters
    ----------
    f, g : (n,), (m,) arrays
        Potentials; -inf at zero weights of an entropic problem, which get the mean slope.
    """
    (f, mean_f), (g, mean_g) = centred(f), centred(g)
    price = mean_f + mean_g + reg
    shares = {(True, False): (price, 0.0), (False, True): (0.0, price)}
    to_f, to_g = shares.get(are_given, (price / 2, price / 2))
    return f + to_f, g + to_g


def free_weight_slopes(
    da: Vector, db: Vector, *, are_given: tuple[bool, bool]
) -> tuple[Vector, Vector]:
    """Return the slopes of the value in weights that need no equal totals.

    Weights that were not given are uniform with the total of the others, so the slopes in the given
    ones include their mean slope.
    """
    shares = {(True, False): (float(db.mean()), 0.0), (False, True): (0.0, float(da.mean()))}
    to_a, to_b = shares.get(are_given, (0.0, 0.0))
    return da + to_a, db + to_b


# -- partners of points --------------------------------------------------------------------------


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
    clouds = CloudLoss(metric=metric, rtol=EXACT_RTOL, n_threads=n_threads)
    with parallel.limit(n_threads):
        costs = _costs(x, y, metric)
        if costs is not None and a is None and b is None and x.shape[-2] == y.shape[-2]:
            found = _assigned(costs)
            if found is not None:
                return found
    if (
        costs is not None
        and x.shape[-1] >= TUNING.min_product_coordinates
        and np.isfinite(costs).all()
    ):
        solved = MatrixLoss(rtol=EXACT_RTOL, n_threads=n_threads).solve(costs, a, b)
    else:
        solved = clouds.solve(x, y, a, b)
    rng = np.random.default_rng(seed)
    plans = (sparse.csr_array(plan) for plan in solved.plans)
    return np.array([_drawn(plan, rng) for plan in plans]), solved.gap


def _costs(x: Array, y: Array, metric: str) -> Array | None:
    """Return the costs (k, n, m), or None if the problems are solved without a matrix."""
    (k, n, d), m = x.shape, y.shape[-2]
    if METRICS[metric].square == 1 and d >= TUNING.min_product_coordinates:
        out = np.empty((k, n, m))
        for clouds in zip(x, y, out, strict=True):
            squared_distances(*clouds)
        return out
    key = batch_key(metric)
    if key is None or not is_small(n, m):
        return None
    out = np.empty((k, n, m))
    sizes = np.array([(n, m, d)] * k)
    cloud_costs(flat(x), flat(y), key, sizes, out.reshape(-1))
    return out


def _assigned(costs: Array) -> tuple[Index, Vector] | None:
    """Solve small assignment problems by compiled code; return None if one is not solved."""
    k, n, m = costs.shape
    if not is_small(n, m):
        return None
    found, gaps = [], []
    chunks = StackSource(k, costs, None, None, normalize=False).chunks(0)
    for _, answers in parallel.in_order(
        partial(solve_packed, goal=BatchGoal(0.0, EXACT_RTOL)), chunks
    ):
        if not answers.n_arcs.all():
            return None
        found.append(answers.arcs[1].reshape(-1, 2, n)[:, 0])  # each problem has n + m slots
        gaps.append(answers.numbers[:, 0] - answers.numbers[:, 1])
    return np.concatenate(found), np.concatenate(gaps)


def _drawn(plan: sparse.csr_array, rng: np.random.Generator) -> Index:
    """Draw a partner for each row with the probabilities of the plan."""
    masses = plan.sum(axis=1)
    if not masses.all():
        i = int(np.argmin(masses > 0))
        raise InvalidProblem(f"a[{i}] is 0; a point without mass has no partner (remove it).")
    ends = np.cumsum(plan.data)
    starts = np.concatenate(([0.0], ends))[plan.indptr[:-1]]
    places = np.searchsorted(ends, starts + rng.random(len(masses)) * masses, side="right")
    places = np.clip(places, plan.indptr[:-1], plan.indptr[1:] - 1)
    return np.asarray(plan.indices[places], np.int64)
