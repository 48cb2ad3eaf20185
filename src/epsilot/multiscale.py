"""Potentials of a large cloud from a small one: coarsen, solve, extend.

Points are gathered into cells of equal count by median splits; the centroids with the cells'
masses are a small problem, solved nearly exactly. A potential of the small problem extends to
every point of the large one by a c-transform, f(x) = min_J c(x, y_J) - g_J.
"""

from __future__ import annotations

import numpy as np

from ._types import Index, Matrix, Potentials, Vector
from .approximate import solve
from .geometry import PointCloud

#: Cells of the coarse clouds; the coarse problem takes a fraction of a second.
N_CELLS = 1500
#: Smallest cloud and highest dimension for which a coarse cloud says enough.
SMALLEST, HIGHEST = 5000, 3


def is_worthwhile(cloud: PointCloud) -> bool:
    """Tell whether a coarse problem saves more than it costs."""
    return min(cloud.shape) >= SMALLEST and cloud.X.shape[1] <= HIGHEST


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


def coarse_potentials(
    cloud: PointCloud, a: Vector, b: Vector, n_cells: int = N_CELLS
) -> Potentials:
    """Return potentials of a cloud, extended from a coarse version of it."""
    X, p = coarsen(cloud.X, a, n_cells)
    Y, q = coarsen(cloud.Y, b, n_cells)
    coarse = PointCloud(X, Y, cloud.metric)
    small = solve(coarse.block(0, X.shape[0]), p, q, rtol=1e-3, normalize=True, on_limit="ignore")
    f = PointCloud(cloud.X, Y, cloud.metric).ctransform_rows(small.potentials[1])
    g = PointCloud(cloud.Y, X, cloud.metric).ctransform_rows(small.potentials[0])
    return f, g
