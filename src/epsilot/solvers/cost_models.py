"""Predict the time of methods: cost models, features of costs, and the offers that "auto" compares.

A model predicts seconds of processor time on an n x m problem:
overhead + dense n m + scale (n + m)^power. Predictions never depend on the number of threads.
``python -m epsilot_lab calibrate`` fits the coefficients. The package ships them in
``data/cost_models.json``; the environment variable ``EPSILOT_COST_MODELS`` names another file.

Features tell apart problems on which methods take very different times. They come from a small
sample of fixed rows and columns, by sums in a fixed order. So the choice of a method is the same
for any number of threads.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from .._types import Fields, Matrix
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.recovery import evenly_spread
from ..geometry.tree_index import Embedding
from ..metrics import metric_of
from ..wording import first_line, shown


class Offer(NamedTuple):
    """A method's bid to be the one that "auto" chooses."""

    reason: str  # why the method suits the problem, shown in ``Result.choice``
    seconds: float  # predicted processor time
    bytes: int  # predicted peak memory beyond the inputs
    handicap: float = 1.0  # factor on the seconds when offers are compared; lower wins
    coarse_gap: float = 0.0  # relative gap that coarse plans reach
    fine_seconds: float = 0.0  # predicted in addition if the goal is tighter than that

    def seconds_to(self, rtol: float) -> float:
        """Return the predicted seconds to a relative gap."""
        return self.seconds + (self.fine_seconds if rtol < self.coarse_gap else 0.0)


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Coefficients of a cost model, in seconds of processor time and in bytes."""

    overhead: float  # seconds per call
    dense: float  # seconds per entry of the cost
    scale: float  # seconds per (n + m) ** power
    power: float
    bytes: float = 0.0  # per entry, or per row and column: see each method's offer
    lazy: float = 0.0  # seconds per entry of a cost that is not stored

    def seconds(self, n: int, m: int, *, is_lazy: bool = False) -> float:
        """Return the predicted seconds on an n x m problem."""
        per_entry = self.lazy if is_lazy else self.dense
        rest = self.scale * float((n + m) ** self.power)
        return self.overhead + per_entry * (n * m) + rest


@lru_cache(maxsize=4)
def _read(path: str | None) -> tuple[dict[str, Fields], dict[str, CostModel]]:
    """Return all models as read, and as objects; models a file lacks are the shipped ones."""
    try:
        if path is None:
            text = resources.files("epsilot").joinpath("data/cost_models.json").read_text()
        else:
            with open(path) as file:
                text = file.read()
        fields: dict[str, Fields] = json.loads(text)
        fields = fields if path is None else _read(None)[0] | fields
        return fields, {name: CostModel(**model) for name, model in fields.items()}
    except (OSError, ValueError, TypeError) as error:
        raise InvalidProblem(
            f"EPSILOT_COST_MODELS is {shown(path)}, which cannot be read ({first_line(error)}); it "
            "must name a JSON file written by python -m epsilot_lab calibrate."
        ) from None


def cost_models() -> dict[str, Fields]:
    """Return the coefficients in force, by the name of the model."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))[0]


def cost_model(name: str) -> CostModel:
    """Return the model of this name."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))[1][name]


#: Rows and columns of the sample of costs, and points per cloud of the sample of points.
SAMPLE_SIDE, SAMPLE_POINTS = 24, 256
#: Relative gap of coarse plans between solid clouds whose separation is 1, and the separation up to
#: which that between flat clouds does not fall.
COARSE_GAP, FLAT_SEPARATION = 0.02, 2.5


@dataclass(frozen=True)
class CloudFeatures:
    """The shape of two clouds."""

    dimension: float  # (Σ √σ)² / Σ σ, with σ the standard deviations along independent axes
    separation: float  # distance of the means, by the root of the sum of all variances
    is_separable: bool  # whether the cost is a sum over the coordinates

    @property
    def coarse_gap(self) -> float:
        """The relative gap that coarse plans reach, with distances that are not squared.

        Paths between distant clouds are nearly parallel: the costs of all plans differ by a share
        of about 1 / separation², unless the cost is a sum over the coordinates. In few dimensions
        coarse cells are small.
        """
        least = float(FLAT_SEPARATION ** max(3 - self.dimension, 0.0))
        return COARSE_GAP / max(0.0 if self.is_separable else self.separation, least) ** 2


def cloud_features(embedding: Embedding) -> CloudFeatures:
    """Return the features of the points of a cost."""
    is_separable = metric_of(embedding.metric).is_separable
    (x, within_x), (y, within_y) = _moments(embedding.X), _moments(embedding.Y)
    covariance = within_x + within_y
    total = float(np.trace(covariance))
    if not 0 < total < np.inf:  # single points
        return CloudFeatures(1.0, 0.0, is_separable)
    deviations = [math.sqrt(variance) for variance in _pivots(covariance / total)]
    dimension = sum(map(math.sqrt, deviations)) ** 2 / sum(deviations)
    apart = float(((x - y) ** 2).sum())
    return CloudFeatures(dimension, math.sqrt(apart / total), is_separable)


def _pivots(covariance: Matrix) -> list[float]:
    """Return the variance of each axis that those before it leave, the largest first."""
    rest, found = covariance.copy(), []
    for _ in range(len(rest)):
        variances = np.diagonal(rest)
        axis = int(np.argmax(variances))
        largest = float(variances[axis])
        # A smaller share of all variances is round-off.
        if not largest > 1e-12:
            break
        found.append(largest)
        rest = rest - rest[:, axis, None] * (rest[axis] / largest)
    return found


def _moments(points: Matrix) -> tuple[Matrix, Matrix]:
    """Return the mean and the covariance of a sample; sums over the first axis have one order."""
    sample = points[evenly_spread(len(points), SAMPLE_POINTS)]
    mean = sample.sum(axis=0) / len(sample)
    deviations = sample - mean
    products = deviations[:, :, None] * deviations[:, None, :]
    return mean, products.sum(axis=0) / len(sample)


def tie_measure(geometry: Geometry) -> float:
    """Return how much equal costs are in a simplex's way: (4 ρ (1 - ρ))², 0.4 for integers 0 to 4.

    ρ is the probability that two costs of a sample are equal. Of few distinct values each is in
    many bases; if nearly all costs are equal, the others decide.
    """
    n, m = geometry.shape
    rows, cols = evenly_spread(n, SAMPLE_SIDE), evenly_spread(m, SAMPLE_SIDE)
    costs = np.sort(geometry.entries(np.repeat(rows, cols.size), np.tile(cols, rows.size)))
    if costs.size < 2:
        return 0.0
    ends = np.flatnonzero(np.concatenate([costs[1:] != costs[:-1], [True]]))
    counts = np.diff(ends, prepend=-1)
    equal = float((counts * (counts - 1)).sum()) / (costs.size * (costs.size - 1))
    return (4 * equal * (1 - equal)) ** 2


def median_arc_cost(geometry: Geometry) -> float:
    """Return the median of some costs of a sparse cost, above the least one."""
    arcs = geometry.allowed
    assert arcs is not None
    stride = max(1, arcs.costs.size // 4096)  # 4096 to 8191 arcs tell the median
    sample = arcs.costs[::stride] - geometry.bounds[0]
    return float(np.median(sample)) or float(sample.mean()) or geometry.cost_unit
