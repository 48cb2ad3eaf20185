"""Barycentres whose points are free: certified solves and moves of the points, in turns."""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..engine.execute import execute
from ..engine.interrupts import graceful_interrupts
from ..engine.request import Request
from ..engine.result import Result
from ..geometry.clouds import cloud_geometry
from ..problems.plan import Plan
from ..problems.problem import make_problem


class Ending(enum.Enum):
    """How the rounds ended; the value is the sentence to show."""

    SETTLED = "the points no longer move: a local optimum, which another start may better"
    MAX_ITER = "stopped by max_iter while the points still moved; raise it"
    MAX_SECONDS = "stopped by max_seconds while the points still moved; raise it"
    INTERRUPTED = "interrupted while the points still moved"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class SampleBarycenterResult:
    r"""Points with masses b, and certified plans to them from every cloud.

    ``value`` and ``lower_bound`` bracket the cost Σ w_k OT(a_k, b) of *these* points; that no other
    points are better is not proved, and in general not true: they are a local optimum.
    """

    points: Matrix
    barycenter: Vector  # b, the masses of the points
    plans: tuple[Plan, ...] = field(repr=False)
    potentials: tuple[Potentials, ...] = field(repr=False)
    value: float
    lower_bound: float
    values: Vector
    weights: Vector
    converged: bool
    status: Ending
    n_iter: int
    history: list[float] = field(repr=False)  # the value before every move, and the last
    seconds: float

    @property
    def gap(self) -> float:
        """Certified accuracy of the cost of these points."""
        return self.value - self.lower_bound


@dataclass(frozen=True)
class Clouds:
    """Points with masses of one total, and weights of total 1."""

    points: tuple[Matrix, ...]
    masses: tuple[Vector, ...]
    weights: Vector


@dataclass(frozen=True, kw_only=True)
class Stops:
    """When rounds end: a round lowers the value by too little, or a limit is reached."""

    decrease: float
    max_iter: int
    max_seconds: float


def alternate(
    clouds: Clouds,
    Y: Matrix,
    b: Vector,
    *,
    request: Request,
    stops: Stops,
) -> SampleBarycenterResult:
    """Solve for the plans to the points, move every point to the mean of its mass, and again.

    For squared distances the mean is the best place, so that the value falls with every round but
    for the solves' own gaps (Cuturi, Doucet 2014, Algorithm 2, with masses that stay).
    """
    began, history = time.perf_counter(), []
    with graceful_interrupts() as is_interrupted:
        while True:
            found = [
                execute(make_problem(cloud_geometry(X, Y), a, b), request)
                for X, a in zip(clouds.points, clouds.masses, strict=True)
            ]
            history.append(_mean(clouds.weights, [result.value for result in found]))
            ending = _ending(history, stops, time.perf_counter() - began)
            ending = Ending.INTERRUPTED if is_interrupted() else ending
            if ending is not None:
                break
            Y = moved(clouds, found, b)
    seconds = time.perf_counter() - began
    return _result(clouds, Y, b, found, ending, history, seconds)


def moved(clouds: Clouds, found: Sequence[Result], b: Vector) -> Matrix:
    """Return Σ w_k X_kᵀ Z_k / b, the mean of what every point receives."""
    total = np.zeros((b.size, clouds.points[0].shape[1]))
    for w, result, Z in zip(clouds.weights.tolist(), found, clouds.points, strict=True):
        for axis in range(Z.shape[1]):
            total[:, axis] += w * result.plan_operator.cols(np.ascontiguousarray(Z[:, axis]))
    return total / b[:, None]


def _ending(history: list[float], stops: Stops, seconds: float) -> Ending | None:
    """Return how the rounds end, if they do."""
    if len(history) > 1 and history[-2] - history[-1] <= stops.decrease * abs(history[-2]):
        return Ending.SETTLED
    if len(history) > stops.max_iter:
        return Ending.MAX_ITER
    return Ending.MAX_SECONDS if seconds >= stops.max_seconds else None


def _mean(weights: Vector, values: Sequence[float]) -> float:
    return float(sum(w * v for w, v in zip(weights.tolist(), values, strict=True)))


def _result(
    clouds: Clouds,
    Y: Matrix,
    b: Vector,
    found: Sequence[Result],
    ending: Ending,
    history: list[float],
    seconds: float,
) -> SampleBarycenterResult:
    """Return the last points with the certificates of the last solves, which were made there."""
    return SampleBarycenterResult(
        points=Y,
        barycenter=b,
        plans=tuple(result.plan_operator for result in found),
        potentials=tuple(result.potentials for result in found),
        value=_mean(clouds.weights, [result.value for result in found]),
        lower_bound=_mean(clouds.weights, [result.lower_bound for result in found]),
        values=np.array([result.value for result in found]),
        weights=clouds.weights,
        converged=ending is Ending.SETTLED and all(result.converged for result in found),
        status=ending,
        n_iter=len(history) - 1,
        history=history,
        seconds=seconds,
    )
