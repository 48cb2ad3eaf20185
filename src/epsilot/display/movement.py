"""Where a plan takes mass, in numbers that a picture can show: means, sums, samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector

if TYPE_CHECKING:
    from ..problems.plan import Plan

#: Arcs that are drawn at most, and entries of a plan that may be looked at to find them.
N_ARCS, LOOKED_AT = 600, 1 << 26
#: Steps of a sequence that fills an interval evenly from its beginning on.
GOLDEN = (math.sqrt(5) - 1) / 2


def grid_shape(X: Matrix) -> tuple[int, int] | None:
    """Return the shape of an image whose pixels are at some points, row by row, else None.

    Examples
    --------
    >>> grid_shape(np.indices((3, 4)).reshape(2, -1).T * 0.5)
    (3, 4)
    """
    if X.ndim != 2 or X.shape[1] != 2:
        return None
    sides = [np.unique(x) for x in X.T]
    shape = sides[0].size, sides[1].size
    if min(shape) < 3 or math.prod(shape) != len(X):
        return None
    rows, cols = np.meshgrid(*sides, indexing="ij")
    is_in_order = np.array_equal(X[:, 0], rows.ravel()) and np.array_equal(X[:, 1], cols.ravel())
    return shape if is_in_order else None


def movement(X: Matrix, Y: Matrix, plan: Plan) -> tuple[Vector, Matrix]:
    """Return the mass that leaves each source, and that mass times its mean step."""
    mass, *totals = (plan @ np.column_stack([np.ones(len(Y)), Y])).T
    return mass, np.stack(totals, axis=1) - mass[:, None] * X


def per_cell(x: Matrix, shape: tuple[int, ...], cell: int) -> Matrix:
    """Sum a field over square cells of pixels."""
    if cell == 1:
        return x
    height, width = (-(-side // cell) * cell for side in shape)
    field = x.reshape(*shape, -1)
    padded = np.zeros((height, width, field.shape[-1]))
    padded[: shape[0], : shape[1]] = field
    cells = padded.reshape(height // cell, cell, width // cell, cell, -1).sum(axis=(1, 3))
    return np.asarray(cells.reshape(-1, *x.shape[1:]))


class Arcs(NamedTuple):
    """Some pairs between which mass moves, and how often each was drawn."""

    i: Index
    j: Index
    times: Vector


def sampled_arcs(plan: Plan, sent: Vector) -> Arcs:
    """Return arcs drawn in proportion to their mass, the same ones every time.

    Sources are taken at equal steps of the mass that leaves them, and targets of each at steps of
    the golden ratio, so that no generator is needed.
    """
    n_drawn = int(np.clip(LOOKED_AT // plan.shape[1], 30, N_ARCS))
    i = _at_steps(sent, n_drawn)
    j = np.empty_like(i)
    for row in np.unique(i):
        found = np.flatnonzero(i == row)
        j[found] = _quantiles(plan.row(int(row)), np.asarray((GOLDEN * (found + 1)) % 1.0))
    pairs, times = np.unique(i * plan.shape[1] + j, return_counts=True)
    return Arcs(*np.divmod(pairs, plan.shape[1]), times.astype(np.float64))


def sampled(masses: Vector, most: int) -> Index:
    """Return some of the places that have mass, in proportion to it if they are too many."""
    found = np.flatnonzero(masses > 0)
    return found if found.size <= most else np.unique(_at_steps(masses, most))


def _at_steps(masses: Vector, n_drawn: int) -> Index:
    """Return places at equal steps of mass."""
    return _quantiles(masses, (np.arange(n_drawn) + 0.5) / n_drawn)


def _quantiles(masses: Vector, shares: Vector) -> Index:
    """Return the places up to which shares of the mass are."""
    reached = np.cumsum(masses)
    found = np.searchsorted(reached, shares * reached[-1], side="right")
    return np.asarray(np.minimum(found, np.flatnonzero(masses > 0)[-1]))


def block_masses(plan: Plan, most: int) -> tuple[Matrix, bool]:
    """Return the masses of blocks of a plan's rows and columns, and whether all rows were seen.

    Of a plan with too many entries some rows at equal distances are looked at.
    """
    n, m = plan.shape
    shape = min(n, most), min(m, most)
    rows_of, cols_of = (np.arange(size) * k // size for size, k in zip((n, m), shape, strict=True))
    out = np.zeros(shape)
    if n * m <= LOOKED_AT:
        for start, X in plan.blocks():
            _add(out, rows_of[start : start + len(X)], cols_of, X)
        return out, True
    n_seen = max(shape[0], LOOKED_AT // m)
    for i in np.unique(np.linspace(0, n - 1, min(n, n_seen)).astype(np.intp)):
        _add(out, rows_of[i : i + 1], cols_of, plan.row(int(i))[None])
    return out, False


def _add(out: Matrix, rows: Index, cols: Index, X: Matrix) -> None:
    """Add rows of a plan to the blocks they belong to."""
    starts = np.flatnonzero(np.diff(cols, prepend=-1))
    np.add.at(out, rows, np.add.reduceat(X, starts, axis=1))


def flattened(X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Return points on the two directions in which all of them together vary most."""
    both = np.concatenate((X, Y))
    centre = both.mean(axis=0)
    directions = np.linalg.eigh(np.cov((both - centre).T))[1][:, :-3:-1]
    largest = np.argmax(np.abs(directions), axis=0)
    directions = directions * np.sign(directions[largest, range(2)])
    return (X - centre) @ directions, (Y - centre) @ directions
