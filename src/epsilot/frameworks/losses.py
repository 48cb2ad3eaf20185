"""Values of stacks of transport problems, with what their gradients are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from .. import parallel
from .._types import Array, Matrix, Potentials, Vector
from ..api.batch import solve_batch, solve_sample_batch
from ..api.solve import solve
from ..arguments import is_real, plain
from ..engine.batch.result import BatchResult, Plans
from ..engine.request import Request
from ..engine.result import Result, Status
from ..errors import InvalidProblem
from ..geometry import Dense, Geometry
from ..geometry.clouds import cloud_geometry
from ..metrics import POINT_METRICS
from ..problems.plan import Arcs, Plan
from ..wording import shown
from .slopes import point_slopes, weight_slopes
from .starts import newton_potentials, shared_potential

#: Relative gap that is asked for if nothing else is: most solutions are then exact.
RTOL = 1e-6
#: The same of entropic problems, as a share of the largest cost: gradients err by its root.
TOL = 1e-9
#: Rows and columns up to which entropic problems start from Newton's method.
START_ROWS = 2048
#: Epochs of Sinkhorn's algorithm after which, on up to so many rows, ``box_newton`` takes over.
EPOCHS, NEWTON_ROWS = 300, 1000


class Solved(NamedTuple):
    """The answers to k problems of one shape."""

    value: Vector  # (k,)
    gap: Vector  # (k,)
    f: Matrix  # (k, n)
    g: Matrix  # (k, m)
    plans: Plans | Sequence[Plan]  # sparse ones of a batch, or those of single runs


class Outcome(NamedTuple):
    """Values, gaps and potentials of k problems, and the slopes of the values that were wanted.

    ``slopes`` has one entry for each argument: an array of its shape, or None.
    """

    value: Vector
    gap: Vector
    f: Matrix
    g: Matrix
    slopes: tuple[Array | None, ...]


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """What is asked of every problem; hashable, as frameworks want static arguments to be."""

    eps: float | None = None
    rtol: float | None = None
    reg: float | None = None
    tol: float | None = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("eps", "rtol", "reg", "tol", "n_threads"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    @abstractmethod
    def __call__(self, parts: Sequence[Array | None], wanted: Sequence[bool]) -> Outcome:
        """Solve problems whose parts are stacked along a first axis.

        Parameters
        ----------
        parts : arrays
            What the cost is made of, then the weights a and b, or None for uniform ones.
        wanted : sequence of bool
            Of which of them the slopes are wanted.
        """

    @staticmethod
    @abstractmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return n and m of the problems, from the shapes of the parts that are given."""

    def check(self) -> None:
        """Reject options that no problem can be solved with."""
        Request(eps=self.eps, rtol=self.rtol, reg=self.reg, tol=self.tol, n_threads=self.n_threads)

    @property
    def _keywords(self) -> dict[str, Any]:
        """What is asked of the batch solver."""
        is_open = self.eps is None and self.rtol is None
        rtol = RTOL if is_open else self.rtol
        return {"eps": self.eps, "rtol": rtol, "n_threads": self.n_threads}

    def _entropic(
        self,
        geometry: Geometry,
        a: Array | None,
        b: Array | None,
        start: Potentials | None = None,
    ) -> Result:
        """Solve one entropic problem: by Sinkhorn's algorithm, or Newton's where that is slow."""
        tol = self._tolerance(geometry, a, b)
        asked: dict[str, Any] = {
            "eps": self.eps,
            "rtol": self.rtol,
            "reg": self.reg,
            "tol": tol,
            "n_threads": self.n_threads,
        }
        is_small, is_startable = (max(geometry.shape) <= n for n in (NEWTON_ROWS, START_ROWS))
        if start is None and is_startable and _is_positive(self.reg) and _is_positive(tol):
            with parallel.limit(self.n_threads):
                start = newton_potentials(geometry, a, b, float(self.reg), float(tol))
        ease: dict[str, Any] = {"max_iter": EPOCHS, "on_limit": "ignore"} if is_small else {}
        result = solve(geometry, a, b, potentials_init=start, **asked, **ease)
        if is_small and result.status is Status.MAX_ITER:
            f, g = (np.where(np.isfinite(z), z, 0.0) for z in result.potentials)
            result = solve(geometry, a, b, potentials_init=(f, g), method="box_newton", **asked)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # a training loop must not go on with half of a solution
        return result

    def _tolerance(self, geometry: Geometry, a: Array | None, b: Array | None) -> float | None:
        """Return the entropic gap to reach."""
        if self.tol is not None or not is_real(self.reg):
            return self.tol
        weights = b if a is None else a
        mass = 1.0 if weights is None else float(weights.sum())
        return TOL * max(*map(abs, geometry.bounds), float(self.reg)) * mass or None

    def _weight_slopes(
        self, solved: Solved, a: Array | None, b: Array | None, wanted: Sequence[bool]
    ) -> tuple[Matrix | None, Matrix | None]:
        """Return the slopes in a and b that are wanted."""
        if not any(wanted):
            return None, None
        are_given = a is not None, b is not None
        pairs = [
            weight_slopes(f, g, self.reg or 0.0, are_given=are_given)
            for f, g in zip(solved.f, solved.g, strict=True)
        ]
        da, db = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
        return da if wanted[0] else None, db if wanted[1] else None


@dataclass(frozen=True, kw_only=True)
class CloudLoss(Loss):
    """Transport between point clouds: parts x (k, n, d), y (k, m, d), a, b."""

    metric: str = "sqeuclidean"

    @staticmethod
    def sizes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
        """Return the numbers of points."""
        return shapes[0][-2], shapes[1][-2]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.metric, str) and self.metric in POINT_METRICS):
            raise InvalidProblem(
                f"metric is {shown(self.metric)}; it must be one of {', '.join(POINT_METRICS)} "
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

    def solve(self, x: Array, y: Array, a: Array | None, b: Array | None) -> Solved:
        """Solve the problems of stacked clouds."""
        if self.reg is None and self.tol is None:
            keywords = {"metric": self.metric, **self._keywords}
            return from_batch(_collected(solve_sample_batch, x, y, a, b, **keywords))
        geometries = (cloud_geometry(x[k], y[k], self.metric) for k in range(len(x)))
        return _stacked([self._entropic(c, *_own(k, a, b)) for k, c in enumerate(geometries)])


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

    def solve(self, x: Array, y: Array, a: Array | None, b: Array | None) -> Solved:
        """Solve each problem from the potential that both sides share."""
        results = []
        for k, cloud in enumerate(x):
            geometry = cloud_geometry(cloud, cloud, self.metric)
            weights, start = _own(k, a, b), None
            if _is_positive(self.reg):
                with parallel.limit(self.n_threads):
                    f = shared_potential(geometry, weights[0], float(self.reg))
                start = f, f
            results.append(self._entropic(geometry, *weights, start))
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

    def solve(self, M: Array, a: Array | None, b: Array | None) -> Solved:
        """Solve the problems of stacked costs."""
        if self.reg is None and self.tol is None:
            return from_batch(_collected(solve_batch, M, a, b, **self._keywords))
        return _stacked([self._entropic(Dense(C), *_own(k, a, b)) for k, C in enumerate(M)])


def check_held(z: Array | None, dtype: object, largest: float) -> None:
    """Refuse numbers beyond the largest of a type, which would become infinite in it."""
    size = 0.0 if z is None else float(np.max(np.abs(z), where=np.isfinite(z), initial=0.0))
    if size > largest:
        raise InvalidProblem(
            f"the answer reaches {size:.3g}, beyond the range of {dtype}; pass arrays of float64, "
            "or divide the costs (or all points) by one number."
        )


def _is_positive(x: float | None) -> TypeGuard[float]:
    """Tell whether an argument is what a start can work with; others are refused later."""
    return is_real(x) and 0 < x < np.inf


def _own(k: int, a: Array | None, b: Array | None) -> tuple[Array | None, Array | None]:
    """Return the weights of problem k."""
    return None if a is None else a[k], None if b is None else b[k]


def _collected(solve_all: Any, *parts: Array | None, **keywords: Any) -> BatchResult:
    """Return the answers of a batch with plans and potentials, or say what is wrong with one."""
    batch: BatchResult = solve_all(
        *parts, plans=True, potentials=True, on_error="collect", **keywords
    )
    for k, sentence in batch.errors.items():
        raise InvalidProblem(sentence if len(batch) == 1 else f"problem {k}: {sentence}")
    if not batch.is_complete or Status.INTERRUPTED in batch.status:
        raise KeyboardInterrupt  # also where it was inside the last problem, with none left over
    return batch


def from_batch(batch: BatchResult) -> Solved:
    """Return the answers of a batch of one shape."""
    assert batch.plans is not None
    assert batch.potentials is not None
    k = len(batch)
    f, g = (x.reshape(k, -1) for x in (batch.potentials.f, batch.potentials.g))
    return Solved(batch.value, batch.gap, f, g, batch.plans)


def _side_by_side(plans: Plans) -> Arcs:
    """Return the arcs of plans of one shape as those of one block-diagonal plan."""
    (n, m), k = plans.shapes[0], len(plans)
    of = np.repeat(np.arange(k), np.diff(plans.starts))
    return Arcs((int(k * n), int(k * m)), plans.i + n * of, plans.j + m * of, plans.flow)


def _stacked(results: Sequence[Result]) -> Solved:
    """Return the answers of single runs."""
    value, gap = (np.array([getattr(r, name) for r in results]) for name in ("value", "gap"))
    f, g = (np.array([r.potentials[side] for r in results]) for side in (0, 1))
    return Solved(value, gap, f, g, [r.plan_operator for r in results])
