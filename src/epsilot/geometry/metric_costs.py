"""Compute blocks of costs by metrics without compiled kernels: SciPy's names, and functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._types import Matrix
from ..arguments import numeric
from ..errors import InvalidProblem
from ..metrics import BOOLEAN_METRICS, MetricFunction, NamedMetric
from ..wording import first_line


class Costs(Protocol):
    """Computes the metric between some sources and all targets."""

    def __call__(self, X: Matrix, Y: Matrix, start: int) -> Matrix:
        """Return the costs; ``start`` is the index of the first source."""


def costs_of(metric: NamedMetric, X: Matrix, Y: Matrix) -> Costs:
    """Return what computes a metric between points; refuse parameters that do not fit them."""
    if callable(metric.name):
        return _function_costs(metric.name, X, Y)
    return _cdist_costs(metric.name, metric.params, X, Y)


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
