"""Costs between points by any metric without compiled kernels: SciPy's names, and functions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .. import memory
from .._types import Index, Matrix
from ..arguments import numeric
from ..errors import InvalidProblem
from ..metrics import BOOLEAN_METRICS, MetricFunction, NamedMetric
from ..wording import first_line
from .base import Geometry, Places, PublicCall
from .coordinates import check_space, metric_keywords


class Costs(Protocol):
    """Computes the metric between some sources and all targets."""

    def __call__(self, X: Matrix, Y: Matrix, start: int) -> Matrix:
        """Return the costs; ``start`` is the index of the first source."""


class MetricCloud(Geometry):
    """The cost between the points of two clouds by a metric, computed in blocks of rows.

    Parameters
    ----------
    X, Y : (n, d), (m, d) arrays
        Sources and targets, checked.
    metric : NamedMetric
        A name of SciPy with its parameters, or a function.
    """

    noun = "a point cloud"
    public_call: PublicCall | None = None  # None: on points

    def __init__(self, X: Matrix, Y: Matrix, metric: NamedMetric) -> None:
        check_space(X.shape, Y.shape)
        self.X, self.Y, self.metric = X, Y, metric
        self.shape, self.dimension = (len(X), len(Y)), X.shape[1]
        self.shift, self.factor = 0.0, 1.0
        what = f"the metric {metric} on {len(X):,} x {len(Y):,} points"
        memory.ask(self.workspace, what, "use a metric with compiled kernels, or fewer points")
        self._costs: Costs = (
            _function_costs(metric.name, X, Y)
            if callable(metric.name)
            else _cdist_costs(metric.name, metric.params, X, Y)
        )

    def __repr__(self) -> str:
        return f"PointCloud({self.shape[0]} x {self.shape[1]}, {self.X.shape[1]}-d, {self.metric})"

    def __getstate__(self) -> dict[str, object]:
        """Pickle the points and the metric, and nothing derived from them."""
        return vars(self._copy(self.X, self.Y, self.factor, self.shift))

    @property
    def places(self) -> Places | None:
        """The points."""
        if not isinstance(self._costs, CdistCosts):
            return Places(self.X, self.Y, None)
        return Places(self.X, self.Y, replace(self.metric, params=self._costs.params))

    @property
    def cost_metric(self) -> NamedMetric:
        """The metric."""
        return self.metric

    def call(self) -> PublicCall:
        """Return the call on points, or another that made them."""
        keywords = metric_keywords(self.metric)
        return self.public_call or PublicCall("solve_sample", ("X_a", "X_b"), keywords)

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        costs, p = self._costs(self.X[start:stop], self.Y, start), self.metric.p
        is_right = np.isfinite(costs) if p == 1 else (costs >= 0) & (costs < np.inf)
        if not is_right.all():
            i, j = np.argwhere(~is_right)[0]
            needed = "finite" if p == 1 else "finite, and at least 0 for a power"
            raise InvalidProblem(
                f"the metric returned {costs[i, j]} for source {start + i} and target {j}; costs "
                f"must be {needed}."
            )
        return np.asarray(self.factor * (costs if p == 1 else costs**p) + self.shift)

    def shifted(self, delta: float) -> MetricCloud:
        """Return the geometry of C + delta."""
        return self._copy(self.X, self.Y, self.factor, self.shift + delta)

    def rescaled(self, power: int) -> MetricCloud:
        """Return the geometry of 2**power C."""
        factor, shift = np.ldexp([self.factor, self.shift], power)
        return self._copy(self.X, self.Y, float(factor), float(shift))

    def restricted(self, rows: Index, cols: Index) -> MetricCloud:
        """Return the geometry of some of the points."""
        return self._copy(self.X[rows], self.Y[cols], self.factor, self.shift)

    def _copy(self, X: Matrix, Y: Matrix, factor: float, shift: float) -> MetricCloud:
        out = object.__new__(MetricCloud)
        out.X, out.Y, out.metric, out._costs = X, Y, self.metric, self._costs
        out.shape, out.dimension = (len(X), len(Y)), self.dimension
        out.factor, out.shift, out.public_call = factor, shift, self.public_call
        return out

    def digest(self) -> str:
        """Return a hash of points, metric and shift; of the costs if the metric is a function."""
        if callable(self.metric.name):
            return super().digest()
        arrays = (self.X, self.Y, *map(np.asarray, self.metric.params.values()))
        h = hashlib.sha256(f"{self.metric} {self.factor!r} {self.shift!r} {self.shape}".encode())
        for array in arrays:
            h.update(np.ascontiguousarray(array).data)
        return h.hexdigest()[:16]


# -- names -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CdistCosts:
    """A name of :func:`scipy.spatial.distance.cdist`, with all of its parameters."""

    name: str
    params: dict[str, Any]

    def __call__(self, X: Matrix, Y: Matrix, start: int) -> Matrix:
        """Return the costs; NaN where the metric is not defined."""
        from scipy.spatial.distance import cdist  # 0.1 s to import

        with np.errstate(all="ignore"):
            return np.asarray(cdist(X, Y, self.name, **self.params), np.float64)


def _cdist_costs(name: str, params: Any, X: Matrix, Y: Matrix) -> CdistCosts:
    """Check the points and the parameters of a name."""
    if name in BOOLEAN_METRICS:
        for Z, what in ((X, "X_a"), (Y, "X_b")):
            if not (is_truth := (Z == 0) | (Z == 1)).all():
                raise InvalidProblem(
                    f"{what} holds {Z[~is_truth][0]:g}; the metric {name!r} compares truth values, "
                    "0 or 1 (pass a comparison such as X > 0, or use another metric)."
                )
    d = X.shape[1]
    for key, shape in (("V", (d,)), ("VI", (d, d)), ("w", (d,))):
        given = params.get(key)
        if given is not None and np.shape(given) != shape:
            raise InvalidProblem(
                f"the parameter {key} of the metric {name!r} has shape {np.shape(given)}; points "
                f"of {d} coordinates need {shape}."
            )
    costs = CdistCosts(name, dict(params) | _estimated(name, params, X, Y))
    try:
        costs(X[:1], Y[:1], 0)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise InvalidProblem(
            f"SciPy does not compute the metric {name!r} of these points: {first_line(error)} "
            "(see scipy.spatial.distance.cdist for its parameters, which metric_params takes)."
        ) from None
    return costs


def _estimated(name: str, params: Any, X: Matrix, Y: Matrix) -> dict[str, Any]:
    """Return the parameters that SciPy estimates from all points."""
    points = np.concatenate([X, Y])
    if name == "seuclidean" and params.get("V") is None:
        variances = points.var(axis=0, ddof=1)
        if not variances.all():
            raise InvalidProblem(
                f"coordinate {int(np.argmin(variances))} is the same for all points, whose "
                "variance 0 seuclidean divides by (remove it, or give metric_params={'V': ...})."
            )
        return {"V": variances}
    if name == "mahalanobis" and params.get("VI") is None:
        n, d = points.shape
        covariance = np.atleast_2d(np.cov(points.T)) if n > d else np.zeros((d, d))
        if np.linalg.matrix_rank(covariance) < d:
            raise InvalidProblem(
                f"the {n} points have a singular covariance, which mahalanobis inverts (give "
                "metric_params={'VI': ...}, or fewer coordinates)."
            )
        return {"VI": np.linalg.inv(covariance).T}
    return {}


# -- functions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairCosts:
    """A function of two points, f(u, v), as SciPy takes it."""

    function: MetricFunction

    def __call__(self, X: Matrix, Y: Matrix, start: int) -> Matrix:
        """Return the costs, one call per pair."""
        costs = [[self.function(x, y) for y in Y] for x in X]
        return np.asarray(numeric(costs, "what the metric returned"))


@dataclass(frozen=True)
class RowCosts:
    """A function that takes a source and all targets, and returns their costs."""

    function: MetricFunction

    def __call__(self, X: Matrix, Y: Matrix, start: int) -> Matrix:
        """Return the costs, one call per source."""
        out = np.empty((len(X), len(Y)))
        for i, x in enumerate(X):
            costs = numeric(self.function(x, Y), "what the metric returned")
            if costs.shape != Y.shape[:1]:
                raise InvalidProblem(
                    f"the metric returned an array of shape {costs.shape} for source {start + i}; "
                    "it must return one number for two points, f(u, v), or one cost for each of "
                    f"the {len(Y)} targets."
                )
            out[i] = costs
        return out


def _function_costs(function: MetricFunction, X: Matrix, Y: Matrix) -> PairCosts | RowCosts:
    """Tell functions of two points from those that take all targets at once.

    One that does both with the same result is called once per source.
    """
    first = _first_cost(function, X, Y)
    if np.ndim(first) > 0:
        return RowCosts(function)
    numeric(first, "what the metric returned")
    few = Y[:16]
    ends = X[[0, -1]]
    pairs = PairCosts(function)(ends, few, 0)
    try:
        rows = RowCosts(function)(ends, few, 0)
        is_same = np.allclose(rows, pairs, rtol=1e-12, atol=0, equal_nan=True)
    except Exception:  # a function of two points may raise anything
        is_same = False
    return RowCosts(function) if is_same else PairCosts(function)


def _first_cost(function: MetricFunction, X: Matrix, Y: Matrix) -> Any:
    """Return what a function makes of two points, or else of a source and all targets."""
    try:
        return function(X[0], Y[0])
    except Exception:
        try:
            return np.atleast_1d(np.asarray(function(X[0], Y)))
        except Exception:  # the user sees the error of a call with two points
            return function(X[0], Y[0])
