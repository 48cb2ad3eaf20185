"""Stored costs that are distances between the cells of a grid, which nobody said.

Matrices of pixel distances are common, and on a grid there are methods far faster than those that
know nothing of a cost but its entries. What is recognised is used to find a plan and potentials;
certificates look at the stored costs themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import parallel
from .._types import Index, Matrix, Vector
from ..kernels import grid_detection as kernels

#: Cells from which it is worth a look, and the most axes that there may be.
SMALLEST, N_AXES = 64, 3
#: Share of the largest cost by which distances may be rounded otherwise.
TOLERANCE = 1e-13


class Cells(NamedTuple):
    """A grid whose cells, in C order, are rows and columns: sides, spacing, power of distances."""

    shape: tuple[int, ...]
    spacing: tuple[float, ...]
    power: int  # 1: sums of distances along the axes; 2: of their squares


def recognised(C: Matrix) -> Cells | None:
    """Return the grid whose l1 or squared l2 distances a matrix holds, if there is one.

    The first row names the only candidate, so that most matrices are done with at once.
    """
    n, m = C.shape
    if n != m or n < SMALLEST or C[0, 0] != 0:
        return None
    for power in (1, 2):
        axes = _axes(C[0], power, TOLERANCE * float(C[0].max()))
        if axes is not None and not _differs(C, axes, power):
            lengths, steps = zip(*axes, strict=True)
            spacing = steps if power == 1 else tuple(map(math.sqrt, steps))
            return Cells(lengths, spacing, power)
    return None


def _powers(steps: Index, power: int) -> Index:
    return steps if power == 1 else steps * steps


def _axes(row: Vector, power: int, tolerance: float) -> list[tuple[int, float]] | None:
    """Return length and cost of a step of each axis by the costs of the first cell, if it is so."""
    axes: list[tuple[int, float]] = []
    while row.size > 1:
        if len(axes) == N_AXES or not row[1] > 0:
            return None
        is_off = np.abs(row - row[1] * _powers(np.arange(row.size), power)) > tolerance
        length = int(np.argmax(is_off)) if is_off.any() else row.size
        if row.size % length:
            return None
        axes.insert(0, (length, float(row[1])))
        row = row[::length]
    return axes


def _differs(C: Matrix, axes: list[tuple[int, float]], power: int) -> bool:
    """Tell whether a cost differs from the sum over axes."""
    n = len(C)
    tables = []
    for length, step in [(1, 0.0)] * (N_AXES - len(axes)) + axes:
        steps = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
        tables.append(step * _powers(steps, power).astype(np.float64))
    tolerance = TOLERANCE * sum(float(table.max()) for table in tables)
    corner, out = np.array([0, n - 1]), np.zeros(n, dtype=np.bool_)
    if abs(C[corner, corner[::-1]] - sum(table.max() for table in tables)).max() > tolerance:
        return True
    parallel.share(kernels.differs, n, C.size, C, *tables, tolerance, out)
    return bool(out.any())
