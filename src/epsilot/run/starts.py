"""Potentials of a large cloud from a small one: coarsen, solve, extend.

Points are gathered into cells of equal count by median splits; the centroids with the cells'
masses are a small problem, solved nearly exactly. A potential of the small problem extends to
every point of the large one by a c-transform, f(x) = min_J c(x, y_J) - g_J. Between a very
large cloud and a small one lies a third, solved by Sinkhorn's algorithm, whose potentials
extend by the softened minimum of their η: the large cloud then starts near its own fixed point.

A start is a stage of the run it serves: its solves have the run's clock, limits, seed, threads,
callback and interruption, and their operations are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Index, Matrix, Potentials, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry, PointCloud
from ..kernels.vectors import log
from ..transport.duals import softmin
from ..transport.problem import Problem
from .result import Result

#: Cells of the coarse clouds; the coarse problem takes a fraction of a second.
N_CELLS = 1500
#: Cells of the cloud in the middle, its accuracy, and the smallest cloud that has one.
N_MIDDLE, MIDDLE_RTOL, LARGE = 8000, 0.1, 40_000
#: Smallest cloud and highest dimension for which a coarse cloud says enough.
SMALLEST, HIGHEST = 5000, 3

#: Solves a coarse problem within what is left of the run: ``solve`` with the run's limits.
StageSolve = Callable[..., Result]


def wants_start(geometry: Geometry, is_wanted: bool | None) -> bool:
    """Tell whether to start from a coarse problem: if asked to, or if that is worthwhile."""
    if is_wanted and not geometry.can_coarsen:
        raise InvalidProblem(
            f"multiscale=True was given for {geometry!r}; it needs a point cloud with one of the "
            "named metrics that is not stored (pass lazy=True)."
        )
    if is_wanted is not None or not geometry.can_coarsen or geometry.dimension is None:
        return bool(is_wanted)
    return min(geometry.shape) >= SMALLEST and geometry.dimension <= HIGHEST


def split(X: Matrix, n_cells: int) -> list[Index]:
    """Return the points of about ``n_cells`` cells, by median splits of the widest side."""
    parts = [np.arange(X.shape[0])]
    while len(parts) < n_cells and len(parts) < X.shape[0]:
        halves = []
        for part in parts:
            if part.size < 2:
                halves.append(part)
                continue
            axis = int(np.argmax(np.ptp(X[part], axis=0)))
            order = part[np.argsort(X[part, axis], kind="stable")]
            halves += [order[: part.size // 2], order[part.size // 2 :]]
        parts = halves
    return parts


def coarsen(X: Matrix, weights: Vector, n_cells: int) -> tuple[Matrix, Vector]:
    """Return the weighted centroids of the cells of a cloud, and their masses."""
    parts = split(X, n_cells)
    mass = np.array([weights[part].sum() for part in parts])
    centres = [
        np.average(X[part], axis=0, weights=weights[part] if m > 0 else None)
        for part, m in zip(parts, mass, strict=True)
    ]
    return np.array(centres), mass


def coarse_start(problem: Problem, solve: StageSolve) -> Potentials:
    """Return potentials of a problem between clouds, extended from a coarse version of it."""
    cloud: Any = problem.geometry
    f, g = coarse_potentials(cloud, problem.p, problem.q, solve)
    return f + cloud.shift, g


def coarse_potentials(
    cloud: PointCloud, a: Vector, b: Vector, solve: StageSolve, n_cells: int | None = None
) -> Potentials:
    """Return potentials of a cloud without its shift, from cells of its points."""
    if n_cells is None:
        n_cells = N_CELLS if min(cloud.shape) < LARGE else N_MIDDLE
    X, p = coarsen(cloud.X, a, n_cells)
    Y, q = coarsen(cloud.Y, b, n_cells)
    coarse = PointCloud(X, Y, cloud.metric, single=True)
    # Sources to coarse targets, and targets to coarse sources.
    onto_Y = PointCloud(cloud.X, Y, cloud.metric, single=True)
    onto_X = PointCloud(cloud.Y, X, cloud.metric, single=True)
    if n_cells == N_CELLS:
        small = solve(coarse.block(0, X.shape[0]), p, q, rtol=1e-3)
        f, g = small.potentials
        return onto_Y.ctransform_rows(g), onto_X.ctransform_rows(f)
    start = coarse_potentials(coarse, p, q, solve, N_CELLS)
    middle = solve(
        coarse, p, q, rtol=MIDDLE_RTOL, method="sinkhorn", potentials_init=start, multiscale=False
    )
    core: Any = middle.plan_operator.core
    log_a, log_b = (log(np.where(mass > 0, mass, 1.0)) for mass in (a, b))
    f = softmin(log_a, onto_Y.rough.lse_rows(core.g, core.eta), core.eta)
    g = softmin(log_b, onto_X.rough.lse_rows(core.f, core.eta), core.eta)
    return f, g
