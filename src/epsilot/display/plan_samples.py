"""Compute the numbers that pictures of a transport plan show, within limits of time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from .._types import Index, Matrix, Vector
from ..problems.plan import Plan

if TYPE_CHECKING:
    from .results import TransportResult


@dataclass(frozen=True)
class FigureLimits:
    """Limits that keep figures small and quick to draw."""

    image_side: int = 256  # pixels along a side of an image
    arrows_per_side: int = 20  # of a displacement field
    blocks_per_side: int = 64  # of a plan drawn as blocks
    points: int = 1500  # points drawn of each cloud
    arcs: int = 600  # arcs drawn between clouds
    bars: int = 120  # bars of a histogram of points on a line
    rows: int = 10  # rows of the table of the largest entries
    entries_read: int = 1 << 26  # entries of the plan that are computed for one figure
    rounding_share: float = 1e-9  # share of the mass that counts as rounding error


LIMITS = FigureLimits()
#: Limits of a thumbnail, which a notebook draws whenever it shows a result.
THUMBNAIL = FigureLimits(
    image_side=64,
    arrows_per_side=9,
    blocks_per_side=32,
    points=160,
    arcs=90,
    bars=32,
    entries_read=1 << 21,
)
#: Distance from a lattice, in steps, at which a position counts as one of its cells.
LATTICE_ROUNDING = 1e-3
#: Cells per position up to which evenly spaced positions count as a lattice.
CELLS_PER_POSITION = 4


@dataclass(frozen=True)
class MovedMass:
    """A plan, the weights of both sides, and the marginals of the plan."""

    plan: Plan
    a: Vector
    b: Vector
    sent: Vector
    received: Vector

    @classmethod
    def by(cls, plan: Plan, a: Vector, b: Vector) -> MovedMass:
        """Compute the marginals of a plan between weights a and b."""
        return cls(plan, a, b, *plan.marginals())

    @classmethod
    def of(cls, result: TransportResult, limits: FigureLimits = LIMITS) -> MovedMass:
        """Return the moved mass of a result.

        The marginals of a plan with too many entries are taken for the weights.
        """
        problem, plan = result.problem, result.plan_operator
        a, b = problem.mass * problem.p, problem.mass * problem.q
        if is_quick(plan, limits):
            return cls.by(plan, a, b)
        return cls(plan, a, b, a, b)

    @property
    def is_all(self) -> bool:
        """Tell whether the marginals are the weights, up to rounding."""
        pairs = (self.a, self.sent), (self.b, self.received)
        return all(np.abs(x - y).sum() <= LIMITS.rounding_share * x.sum() for x, y in pairs)


def is_quick(plan: Plan, limits: FigureLimits) -> bool:
    """Tell whether a product with the plan reads no more entries than figures may."""
    arcs = plan.core.arcs()
    n_read = math.prod(plan.shape) if arcs is None else arcs.flow.size
    return n_read <= limits.entries_read


def listed_entries(plan: Plan) -> sparse.coo_array | None:
    """Return the positive entries of a plan that stores them one by one, or None."""
    if plan.core.arcs() is None or (plan.correction is not None and plan.correction.e.any()):
        return None
    return plan.tosparse().tocoo()


def grid_shape(X: Matrix) -> tuple[int, int] | None:
    """Return the shape of the image whose pixels are these points row by row, or None.

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


def mass_and_displacement(X: Matrix, Y: Matrix, plan: Plan) -> tuple[Vector, Matrix]:
    """Return the mass that leaves each source, and that mass times its mean displacement."""
    mass, *totals = (plan @ np.column_stack([np.ones(len(Y)), Y])).T
    return mass, np.stack(totals, axis=1) - mass[:, None] * X


def cell_sums(x: Matrix, shape: tuple[int, ...], cell: int) -> Matrix:
    """Sum a field over square cells of ``cell`` by ``cell`` pixels."""
    if cell == 1:
        return x
    height, width = (-(-side // cell) * cell for side in shape)
    field = x.reshape(*shape, -1)
    padded = np.zeros((height, width, field.shape[-1]))
    padded[: shape[0], : shape[1]] = field
    cells = padded.reshape(height // cell, cell, width // cell, cell, -1).sum(axis=(1, 3))
    return np.asarray(cells.reshape(-1, *x.shape[1:]))


class SampledArcs(NamedTuple):
    """Pairs (i, j) with mass between them, and how often each was drawn."""

    i: Index
    j: Index
    times: Vector


def sampled_arcs(plan: Plan, sent: Vector, limits: FigureLimits = LIMITS) -> SampledArcs:
    """Sample arcs in proportion to their mass, without randomness.

    Sources are taken at equal steps of the mass that leaves them, and the targets of each source at
    steps of the golden ratio.
    """
    n_drawn = int(np.clip(limits.entries_read // plan.shape[1], 30, limits.arcs))
    i = _at_steps(sent, n_drawn)
    j = np.empty_like(i)
    golden = (math.sqrt(5) - 1) / 2  # its multiples modulo 1 fill [0, 1) evenly
    for row in np.unique(i):
        found = np.flatnonzero(i == row)
        j[found] = _quantiles(plan.row(int(row)), np.asarray((golden * (found + 1)) % 1.0))
    pairs, times = np.unique(i * plan.shape[1] + j, return_counts=True)
    return SampledArcs(*np.divmod(pairs, plan.shape[1]), times.astype(np.float64))


def sampled(masses: Vector, most: int) -> Index:
    """Return the indices that have mass, or a sample of at most ``most`` of them by mass."""
    found = np.flatnonzero(masses > 0)
    return found if found.size <= most else np.unique(_at_steps(masses, most))


def _at_steps(masses: Vector, n_drawn: int) -> Index:
    """Return indices at equal steps of mass."""
    return _quantiles(masses, (np.arange(n_drawn) + 0.5) / n_drawn)


def _quantiles(masses: Vector, shares: Vector) -> Index:
    """Return the indices at which the cumulative mass reaches the given shares."""
    reached = np.cumsum(masses)
    found = np.searchsorted(reached, shares * reached[-1], side="right")
    return np.asarray(np.minimum(found, np.flatnonzero(masses > 0)[-1]))


def block_masses(plan: Plan, limits: FigureLimits = LIMITS) -> tuple[Matrix, bool]:
    """Return the masses of blocks of rows and columns, and whether all rows were read.

    Of a plan with more than ``limits.entries_read`` entries that are not listed, equally spaced
    rows are read.
    """
    n, m = plan.shape
    most = limits.blocks_per_side
    shape = min(n, most), min(m, most)
    rows_of, cols_of = (np.arange(size) * k // size for size, k in zip((n, m), shape, strict=True))
    out = np.zeros(shape)
    if (listed := listed_entries(plan)) is not None:
        np.add.at(out, (rows_of[listed.row], cols_of[listed.col]), listed.data)
        return out, True
    if n * m <= limits.entries_read:
        for start, X in plan.blocks():
            _add(out, rows_of[start : start + len(X)], cols_of, X)
        return out, True
    n_seen = max(shape[0], limits.entries_read // m)
    for i in np.unique(np.linspace(0, n - 1, min(n, n_seen)).astype(np.intp)):
        _add(out, rows_of[i : i + 1], cols_of, plan.row(int(i))[None])
    return out, False


def _add(out: Matrix, rows: Index, cols: Index, X: Matrix) -> None:
    """Add rows of a plan to their blocks."""
    starts = np.flatnonzero(np.diff(cols, prepend=-1))
    np.add.at(out, rows, np.add.reduceat(X, starts, axis=1))


def principal_plane(X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
    """Project points on the two principal directions of both clouds together."""
    both = np.concatenate((X, Y))
    centre = both.mean(axis=0)
    directions = np.linalg.eigh(np.cov((both - centre).T))[1][:, :-3:-1]
    largest = np.argmax(np.abs(directions), axis=0)
    directions = directions * np.sign(directions[largest, range(2)])
    return (X - centre) @ directions, (Y - centre) @ directions


class LineBins(NamedTuple):
    """Bars of a histogram: where they start, their widths, and the length that each stands for."""

    edges: Vector  # position x is in the last bar whose edge is at most x
    left: Vector
    width: Vector
    length: Vector

    def heights(self, x: Vector, masses: Vector) -> Vector:
        """Return the mass per unit of length of each bar."""
        found = np.searchsorted(self.edges, x, side="right") - 1
        found = np.clip(found, 0, self.left.size - 1)
        return np.asarray(np.bincount(found, masses, self.left.size) / self.length)


def line_bins(x: Vector, most: int = LIMITS.bars) -> LineBins:
    """Return the bars of a histogram; evenly spaced positions fill them equally.

    Positions on a lattice share bars of whole cells. A few others have a thin bar each, and many
    are binned by Rice's rule.

    Examples
    --------
    >>> bins = line_bins(np.arange(6.0))
    >>> bins.heights(np.arange(6.0), np.full(6, 0.5))
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    places = np.unique(x)
    low, span = float(places[0]), float(np.ptp(places))
    if places.size == 1:
        return _bars(np.array([low - 0.5, low + 0.5]))
    step = float(np.diff(places).min())
    n_cells = round(min(span / step, 1e15)) + 1
    if n_cells <= CELLS_PER_POSITION * places.size:
        at = (places - low) / (span / (n_cells - 1))
        if np.abs(at - np.rint(at)).max() <= LATTICE_ROUNDING:
            return _lattice_bars(low, span / (n_cells - 1), n_cells, most)
    if places.size <= most // 2:
        width = np.full(places.size, span / most)
        edges = places - 0.5 * step
        return LineBins(edges, places - 0.5 * width, width, np.full(places.size, span / edges.size))
    n_bins = int(np.clip(2 * np.cbrt(x.size), 8, most))
    return _bars(np.linspace(low, low + span, n_bins + 1))


def _bars(edges: Vector) -> LineBins:
    """Return adjacent bars between edges."""
    return LineBins(edges[:-1], edges[:-1], np.diff(edges), np.diff(edges))


def _lattice_bars(low: float, step: float, n_cells: int, most: int) -> LineBins:
    """Return bars of equally many cells of a lattice; the last one may have fewer."""
    per_bar = -(-n_cells // most)
    cells = np.minimum(np.arange(0, n_cells + per_bar, per_bar), n_cells)
    return _bars(low + step * (cells - 0.5))


class Entry(NamedTuple):
    """An entry of a plan."""

    i: int
    j: int
    mass: float


def largest_entries(plan: Plan) -> list[Entry]:
    """Return the largest entries of a plan, in descending order; none if they are too many."""
    found: list[Entry] = []
    if (listed := listed_entries(plan)) is not None:
        top = np.argsort(-listed.data, kind="stable")[: LIMITS.rows]
        parts = zip(listed.row[top], listed.col[top], listed.data[top], strict=True)
        found = [Entry(int(i), int(j), float(x)) for i, j, x in parts]
    elif math.prod(plan.shape) <= LIMITS.entries_read:
        for start, X in plan.blocks():
            found = _largest([*found, *_top(X, start, LIMITS.rows)], LIMITS.rows)
    return _largest(found, LIMITS.rows)


def _top(X: Matrix, start: int, most: int) -> list[Entry]:
    """Return the largest entries of a block of rows."""
    flat = X.ravel()
    top = np.argpartition(-flat, min(most, flat.size - 1))[:most]
    i, j = np.divmod(top, X.shape[1])
    found = zip(i + start, j, flat[top], strict=True)
    return [Entry(int(a), int(b), float(x)) for a, b, x in found]


def _largest(entries: Iterable[Entry], most: int) -> list[Entry]:
    ordered = sorted(entries, key=lambda x: (-x.mass, x.i, x.j))
    return [entry for entry in ordered if entry.mass > 0][:most]
