"""Draw where a transport plan moves mass: as images, as points, or as blocks of the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector
from ..problems.plan import Plan
from . import charts, html


@dataclass(frozen=True)
class FigureLimits:
    """Limits that keep figures small and quick to draw."""

    image_side: int = 256  # pixels along a side of an image
    arrows_per_side: int = 20  # of a displacement field
    blocks_per_side: int = 64  # of a plan drawn as blocks
    points: int = 1500  # points drawn of each cloud
    arcs: int = 600  # arcs drawn between clouds
    entries_read: int = 1 << 26  # entries of the plan that are computed for one figure
    rounding_share: float = 1e-9  # share of the mass that counts as rounding error


LIMITS = FigureLimits()
#: Multiples of it modulo 1 fill [0, 1) evenly.
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2

STYLE = """
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1.25rem 2rem; align-items: end } .pictures figure { margin: 0 }
.pictures img { display: block; width: 100%; max-width: 34rem; height: auto;
  image-rendering: pixelated; border-radius: 4px }
.pictures svg { max-width: 44rem } .pictures svg image { image-rendering: pixelated }
svg .arrows { fill: none; stroke: #111; stroke-width: 1.1; stroke-linecap: round }
"""


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

    @property
    def is_all(self) -> bool:
        """Tell whether the marginals are the weights, up to rounding."""
        pairs = (self.a, self.sent), (self.b, self.received)
        return all(np.abs(x - y).sum() <= LIMITS.rounding_share * x.sum() for x, y in pairs)


def figures_of(moved: MovedMass, X: Matrix | None, Y: Matrix | None) -> str:
    """Return the figures of a plan between points X and Y, or of its blocks if they are None."""
    if X is None or Y is None:
        figures = [_blocks(moved.plan)]
    elif (shape := grid_shape(X)) is not None and grid_shape(Y) is not None:
        figures = _images(moved, X, Y, shape)
    elif X.shape[1] == 1:
        figures = [_line(moved, X[:, 0], Y[:, 0])]
    else:
        figures = _clouds(moved, X, Y)
    return f'<div class="pictures">{"".join(figures)}</div>'


# -- images ----------------------------------------------------------------------------------


def _images(moved: MovedMass, X: Matrix, Y: Matrix, shape: tuple[int, int]) -> list[str]:
    """Return both images on one colour scale, and the mean displacement."""
    fields = [_shrunk(w, side) for w, side in ((moved.a, shape), (moved.b, grid_shape(Y) or shape))]
    top = max(float(field.max()) for field in fields) or 1.0
    names = "Source", "Target"
    figures = [
        html.figure(
            html.image(charts.sequential_png(field / top), "png", f"{name} masses as an image"),
            f"{name}: lighter pixels have more mass.",
        )
        for name, field in zip(names, fields, strict=True)
    ]
    return [*figures, _displacement(moved, X, Y, shape)]


def _shrunk(masses: Vector, shape: tuple[int, int]) -> Matrix:
    """Return an image with at most ``LIMITS.image_side`` pixels per side, summed over cells."""
    cell = max(1, -(-max(shape) // LIMITS.image_side))
    height, width = (-(-side // cell) for side in shape)
    return cell_sums(masses[:, None], shape, cell).reshape(height, width)


def _displacement(moved: MovedMass, X: Matrix, Y: Matrix, shape: tuple[int, int]) -> str:
    """Return the mean displacement of each cell's mass over source minus target."""
    mass, steps = mass_and_displacement(X, Y, moved.plan)
    cell = max(1, -(-max(shape) // LIMITS.arrows_per_side))
    sums = (cell_sums(x, shape, cell) for x in (mass[:, None] * X, mass[:, None], steps))
    place, mass_of, step = sums
    strength = np.linalg.norm(step, axis=1)
    shown = strength > 0.02 * strength.max(initial=0.0)
    start = place[shown] / mass_of[shown]
    stop = start + step[shown] / mass_of[shown]
    height, width = shape
    unit = charts.WIDTH / width
    corner, far = X[0], X[-1]
    scale = (np.array(shape) - 1) / np.where(far > corner, far - corner, 1.0)
    start, stop = ((unit * ((x - corner) * scale + 0.5))[:, ::-1] for x in (start, stop))
    size = f'width="{charts.WIDTH:g}" height="{unit * height:.1f}"'
    content = charts.diverging_png(_surplus(moved, shape, grid_shape(Y)))
    picture = html.image(content, "png", "").replace("<img src=", f"<image {size} href=")
    parts = [picture.replace(' alt=""', "").removesuffix(">") + "/>", charts.arrows(start, stop)]
    alt = "Arrows from the place of each cell's mass to its mean destination"
    return html.figure(
        charts.drawing(parts, alt, charts.WIDTH, unit * height),
        "Mean displacement; blue where mass leaves, orange where it arrives.",
    )


def _surplus(moved: MovedMass, shape: tuple[int, int], other: tuple[int, int] | None) -> Matrix:
    """Return source minus target scaled to [-1, 1]; zero if the images differ in shape."""
    if shape != other:
        return np.zeros((1, 1))
    surplus = _shrunk(moved.a, shape) - _shrunk(moved.b, shape)
    return np.asarray(surplus / (np.abs(surplus).max() or 1.0))


# -- points ----------------------------------------------------------------------------------


def _clouds(moved: MovedMass, X: Matrix, Y: Matrix) -> list[str]:
    """Return points and arcs in the plane, in three projections, or in the principal plane."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    names = "xyz" if X.shape[1] == 3 else "xy"
    sides = [(0, 1), (0, 2), (1, 2)] if X.shape[1] == 3 else [(0, 1)]
    more = "" if X.shape[1] <= 3 else ", projected on the two directions of largest variance"
    if X.shape[1] > 3:
        X, Y = principal_plane(X, Y)
    figures = []
    for u, v in sides:
        seen = f"{names[u]} and {names[v]}{more}" if not more else f"all coordinates{more}"
        figures.append(_cloud(moved, X[:, (u, v)], Y[:, (u, v)], arcs, seen))
    return figures


def _cloud(moved: MovedMass, X: Matrix, Y: Matrix, arcs: SampledArcs, seen: str) -> str:
    """Return the points of both sides, and arcs between them, in one plane."""
    both = np.concatenate((X, Y))
    low, reach = both.min(axis=0), float(np.ptp(both, axis=0).max()) or 1.0
    margin, width = 10.0, charts.WIDTH - 20.0
    height = 2 * margin + width * float(np.ptp(both[:, 1])) / reach

    def placed(x: Matrix) -> Matrix:
        scaled = margin + width * (x - low) / reach
        return np.column_stack([scaled[:, 0], height - scaled[:, 1]])

    parts = charts.arcs(placed(X)[arcs.i], placed(Y)[arcs.j], arcs.times)
    sides = (placed(X), moved.a, moved.sent, "from"), (placed(Y), moved.b, moved.received, "to")
    n_shown = []
    for places, has, takes_part, kind in sides:
        shown = sampled(has, LIMITS.points)
        n_shown.append(f"{shown.size:,} of {has.size:,}")
        largest = float(np.clip(0.15 * width / np.sqrt(shown.size), 1.0, 4.0))
        if not moved.is_all:
            parts += charts.dots(places[shown], has[shown], largest, f"{kind} still")
        size = takes_part[shown] / (has[shown].max(initial=0.0) or 1.0)
        parts += charts.dots(places[shown], size, largest * np.sqrt(min(1.0, size.max())), kind)
    caption = (
        f"{seen}: sources blue ({n_shown[0]} drawn), targets orange ({n_shown[1]}); "
        f"{arcs.i.size:,} arcs, sampled in proportion to their mass."
    )
    if not moved.is_all:
        caption += " Faint: mass that is not transported."
    alt = f"Sources, targets and arcs between them: {seen}"
    return html.figure(charts.drawing(parts, alt, charts.WIDTH, max(height, 40.0)), caption)


def _line(moved: MovedMass, x: Vector, y: Vector) -> str:
    """Return points on a line: sources as bars above, targets below, arcs between."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    scale = charts.AxisScale.of((*_ends(x), *_ends(y)), 8.0, charts.WIDTH - 8.0)
    n_bins = int(np.clip(max(x.size, y.size), 8, 120))
    edges = np.linspace(scale.low, scale.high, n_bins + 1)
    heights = [np.histogram(z, edges, weights=w)[0] for z, w in ((x, moved.a), (y, moved.b))]
    top = max(float(h.max()) for h in heights) or 1.0
    left, width = scale(edges[:-1]), (charts.WIDTH - 16.0) / n_bins
    feet, tall = (90.0, 190.0), 75.0
    parts = charts.arcs(
        np.column_stack([scale(x[arcs.i]), np.full(arcs.i.size, feet[0])]),
        np.column_stack([scale(y[arcs.j]), np.full(arcs.j.size, feet[1])]),
        arcs.times,
    )
    parts.append(charts.bars(left, width, feet[0], -tall * heights[0] / top, "from"))
    parts.append(charts.bars(left, width, feet[1], tall * heights[1] / top, "to"))
    parts += [
        charts.label(at, 286.0, f"{value:.4g}", where)
        for at, value, where in ((8.0, scale.low, "start"), (charts.WIDTH - 8, scale.high, "end"))
    ]
    caption = f"Sources above, targets below; {arcs.i.size:,} arcs, sampled by their mass."
    alt = "Masses along a line, and arcs from sources to targets"
    return html.figure(charts.drawing(parts, alt, charts.WIDTH, 292.0), caption)


def _ends(x: Vector) -> tuple[float, float]:
    return float(x.min()), float(x.max())


# -- blocks of a plan ------------------------------------------------------------------------


def _blocks(plan: Plan) -> str:
    """Return the masses of blocks of rows and columns, on a logarithmic scale of four decades."""
    masses, is_all = block_masses(plan, LIMITS.blocks_per_side)
    share = np.log10(np.maximum(masses / (masses.max() or 1.0), 1e-4)) / 4 + 1
    n, m = plan.shape
    rows, cols = masses.shape
    caption = (
        f"The plan, {n:,} sources from top to bottom and {m:,} targets from left to right, in "
        f"{rows} × {cols} blocks; from dark to light, 10⁻⁴ to 1 of the largest mass."
    )
    if not is_all:
        caption += " Estimated from equally spaced rows."
    picture = html.image(charts.sequential_png(share), "png", "Masses of the blocks of the plan")
    return html.figure(picture, caption)


# -- numbers that figures show ----------------------------------------------------------------


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


def sampled_arcs(plan: Plan, sent: Vector) -> SampledArcs:
    """Sample arcs in proportion to their mass, without randomness.

    Sources are taken at equal steps of the mass that leaves them, and the targets of each source at
    steps of the golden ratio.
    """
    n_drawn = int(np.clip(LIMITS.entries_read // plan.shape[1], 30, LIMITS.arcs))
    i = _at_steps(sent, n_drawn)
    j = np.empty_like(i)
    for row in np.unique(i):
        found = np.flatnonzero(i == row)
        j[found] = _quantiles(plan.row(int(row)), np.asarray((GOLDEN_RATIO * (found + 1)) % 1.0))
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


def block_masses(plan: Plan, most: int) -> tuple[Matrix, bool]:
    """Return the masses of at most ``most`` by ``most`` blocks, and whether all rows were read.

    Of a plan with more than ``LIMITS.entries_read`` entries, equally spaced rows are read.
    """
    n, m = plan.shape
    shape = min(n, most), min(m, most)
    rows_of, cols_of = (np.arange(size) * k // size for size, k in zip((n, m), shape, strict=True))
    out = np.zeros(shape)
    if n * m <= LIMITS.entries_read:
        for start, X in plan.blocks():
            _add(out, rows_of[start : start + len(X)], cols_of, X)
        return out, True
    n_seen = max(shape[0], LIMITS.entries_read // m)
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
