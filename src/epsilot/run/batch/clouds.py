"""Problems between pairs of point clouds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Matrix
from ...errors import InvalidProblem
from ...geometry.clouds import cloud_geometry
from ...kernels.clouds import cloud_costs
from ...kernels.small_simplex import MOST_NODES
from ...metrics import METRICS, MetricLike
from .lists import ListChunk, source_of_parts
from .packing import as_matrix, as_weights, flat, places
from .source import AsGiven, Given, Source

#: Metrics whose costs are compiled for many clouds at once.
COMPILED = tuple(name for name, metric in METRICS.items() if metric.degree > 0)


@dataclass(frozen=True)
class CloudChunk(ListChunk):
    """Problems whose costs are those between the points of two clouds, ``M = (X_a, X_b)``."""

    metric: MetricLike

    def given(self, k: int) -> Given:
        """Return the k-th of these problems, with the geometry of its clouds for a cost."""
        M, a, b = self.problems[k]
        X_a, X_b = M
        return Given(cloud_geometry(X_a, X_b, self.metric), a, b)

    def costs(self) -> list[Matrix | None]:
        """Return the cost of each problem, or None where the ordinary path has to look at it."""
        if not isinstance(self.metric, str) or self.metric not in COMPILED:
            return [self._dense(k) for k in range(len(self))]
        clouds = [
            (as_matrix(x.M[0]), as_matrix(x.M[1])) if _is_small(x) else (None, None)
            for x in self.problems
        ]
        kept = [
            (X, Y)
            for X, Y in clouds
            if X is not None and Y is not None and X.shape[1] == Y.shape[1]
        ]
        sizes = np.array([(len(X), *Y.shape) for X, Y in kept], np.int64).reshape(-1, 3)
        ends = places(sizes[:, 0] * sizes[:, 1])
        out = np.empty(ends[-1])
        X, Y = (flat(np.concatenate([pair[c].ravel() for pair in kept] or [out])) for c in (0, 1))
        cloud_costs(X, Y, METRICS[self.metric].code, sizes, out)
        found = iter(
            out[start:stop].reshape(n, m)
            for (n, m, _), start, stop in zip(sizes, ends[:-1], ends[1:], strict=True)
        )
        return [
            None if X is None or Y is None or X.shape[1] != Y.shape[1] else next(found)
            for X, Y in clouds
        ]

    def _dense(self, k: int) -> Matrix | None:
        """Return the cost of a metric that is not compiled here."""
        try:
            geometry = self.given(k).M
        except InvalidProblem:
            return None
        return geometry.matrix() if geometry.is_dense else None


def _is_small(problem: Given) -> bool:
    """Tell whether the compiled solver may take clouds; costs of others are not computed here."""
    return sum(map(_n_kept, problem.M, problem[1:])) <= MOST_NODES


def _n_kept(cloud: AsGiven, weights: AsGiven) -> int:
    """Return the number of points that have mass, as far as it is known."""
    size = len(cloud) if hasattr(cloud, "__len__") else 0
    known = as_weights(weights, size)
    return size if known is None else int(np.count_nonzero(known))


def clouds_of(
    X_a: AsGiven,
    X_b: AsGiven,
    a: AsGiven,
    b: AsGiven,
    metric: MetricLike,
    normalize: bool,
) -> Source:
    """Return the problems that clouds and weights, or many of them, describe."""

    def make(first: int, problems: Sequence[Given]) -> CloudChunk:
        return CloudChunk(first, problems, normalize, metric)

    return source_of_parts({"X_a": (X_a, 2), "X_b": (X_b, 2), "a": (a, 1), "b": (b, 1)}, make)
