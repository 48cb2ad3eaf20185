"""Pictures of where mass goes: images, points, or the blocks of a plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Matrix, Vector
from ..problems.plan import Plan
from . import html, raster, svg
from .movement import (
    Arcs,
    block_masses,
    flattened,
    grid_shape,
    movement,
    per_cell,
    sampled,
    sampled_arcs,
)

#: Pixels along a side of an image, arrows along a side, blocks along a side, points of a cloud.
SIDE, ARROWS, BLOCKS, DOTS = 256, 20, 64, 1500
#: Share of the mass that may stay, or come, by rounding.
ROUNDING = 1e-9

STYLE = """
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1.25rem 2rem; align-items: end } .pictures figure { margin: 0 }
.pictures img { display: block; width: 100%; max-width: 34rem; height: auto;
  image-rendering: pixelated; border-radius: 4px }
.pictures svg { max-width: 44rem } .pictures svg image { image-rendering: pixelated }
svg .arrows { fill: none; stroke: #111; stroke-width: 1.1; stroke-linecap: round }
"""


@dataclass(frozen=True)
class Moved:
    """A plan, the weights of both sides, and what of them it moves."""

    plan: Plan
    a: Vector
    b: Vector
    sent: Vector
    received: Vector

    @classmethod
    def by(cls, plan: Plan, a: Vector, b: Vector) -> Moved:
        """Return what a plan moves."""
        return cls(plan, a, b, *plan.marginals())

    @property
    def is_all(self) -> bool:
        """Whether nothing stays and nothing comes from nowhere."""
        pairs = (self.a, self.sent), (self.b, self.received)
        return all(np.abs(x - y).sum() <= ROUNDING * x.sum() for x, y in pairs)


def pictures(moved: Moved, X: Matrix | None, Y: Matrix | None) -> str:
    """Return figures that show where mass goes."""
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


def _images(moved: Moved, X: Matrix, Y: Matrix, shape: tuple[int, int]) -> list[str]:
    """Return both images on one scale, and the mean displacement."""
    fields = [_shrunk(w, side) for w, side in ((moved.a, shape), (moved.b, grid_shape(Y) or shape))]
    top = max(float(field.max()) for field in fields) or 1.0
    names = "Source", "Target"
    figures = [
        html.figure(
            html.image(raster.rising(field / top), "png", f"{name} masses as an image"),
            f"{name}: the lighter, the more mass.",
        )
        for name, field in zip(names, fields, strict=True)
    ]
    return [*figures, _displacement(moved, X, Y, shape)]


def _shrunk(masses: Vector, shape: tuple[int, int]) -> Matrix:
    """Return an image of at most ``SIDE`` pixels along a side; cells sum up what they hold."""
    cell = max(1, -(-max(shape) // SIDE))
    height, width = (-(-side // cell) for side in shape)
    return per_cell(masses[:, None], shape, cell).reshape(height, width)


def _displacement(moved: Moved, X: Matrix, Y: Matrix, shape: tuple[int, int]) -> str:
    """Return the mean step of each cell's mass, over what it has too much or too little of."""
    mass, steps = movement(X, Y, moved.plan)
    cell = max(1, -(-max(shape) // ARROWS))
    sums = (per_cell(x, shape, cell) for x in (mass[:, None] * X, mass[:, None], steps))
    place, mass_of, step = sums
    strength = np.linalg.norm(step, axis=1)
    shown = strength > 0.02 * strength.max(initial=0.0)
    start = place[shown] / mass_of[shown]
    stop = start + step[shown] / mass_of[shown]
    height, width = shape
    unit = svg.WIDTH / width
    corner, far = X[0], X[-1]
    scale = (np.array(shape) - 1) / np.where(far > corner, far - corner, 1.0)
    start, stop = ((unit * ((x - corner) * scale + 0.5))[:, ::-1] for x in (start, stop))
    size = f'width="{svg.WIDTH:g}" height="{unit * height:.1f}"'
    content = raster.around(_surplus(moved, shape, grid_shape(Y)))
    picture = html.image(content, "png", "").replace("<img src=", f"<image {size} href=")
    parts = [picture.replace(' alt=""', "").removesuffix(">") + "/>", svg.arrows(start, stop)]
    alt = "Arrows from where mass is to where it goes on average"
    return html.figure(
        svg.drawing(parts, alt, svg.WIDTH, unit * height),
        "Mean displacement; blue where mass leaves, orange where it arrives.",
    )


def _surplus(moved: Moved, shape: tuple[int, int], other: tuple[int, int] | None) -> Matrix:
    """Return what cells have too much of, between -1 and 1; nothing if the images differ."""
    if shape != other:
        return np.zeros((1, 1))
    surplus = _shrunk(moved.a, shape) - _shrunk(moved.b, shape)
    return np.asarray(surplus / (np.abs(surplus).max() or 1.0))


# -- points ----------------------------------------------------------------------------------


def _clouds(moved: Moved, X: Matrix, Y: Matrix) -> list[str]:
    """Return points and arcs: the plane, three sides of space, or the widest plane of more."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    names = "xyz" if X.shape[1] == 3 else "xy"
    sides = [(0, 1), (0, 2), (1, 2)] if X.shape[1] == 3 else [(0, 1)]
    more = "" if X.shape[1] <= 3 else ", on the two directions in which the points vary most"
    if X.shape[1] > 3:
        X, Y = flattened(X, Y)
    figures = []
    for u, v in sides:
        seen = f"{names[u]} and {names[v]}{more}" if not more else f"all coordinates{more}"
        figures.append(_cloud(moved, X[:, (u, v)], Y[:, (u, v)], arcs, seen))
    return figures


def _cloud(moved: Moved, X: Matrix, Y: Matrix, arcs: Arcs, seen: str) -> str:
    """Return the points of both sides, and arcs between them, in one plane."""
    both = np.concatenate((X, Y))
    low, reach = both.min(axis=0), float(np.ptp(both, axis=0).max()) or 1.0
    margin, room = 10.0, svg.WIDTH - 20.0
    height = 2 * margin + room * float(np.ptp(both[:, 1])) / reach

    def placed(x: Matrix) -> Matrix:
        scaled = margin + room * (x - low) / reach
        return np.column_stack([scaled[:, 0], height - scaled[:, 1]])

    parts = svg.arcs(placed(X)[arcs.i], placed(Y)[arcs.j], arcs.times)
    sides = (placed(X), moved.a, moved.sent, "from"), (placed(Y), moved.b, moved.received, "to")
    n_shown = []
    for places, has, takes_part, kind in sides:
        shown = sampled(has, DOTS)
        n_shown.append(f"{shown.size:,} of {has.size:,}")
        largest = float(np.clip(0.15 * room / np.sqrt(shown.size), 1.0, 4.0))
        if not moved.is_all:
            parts += svg.dots(places[shown], has[shown], largest, f"{kind} still")
        size = takes_part[shown] / (has[shown].max(initial=0.0) or 1.0)
        parts += svg.dots(places[shown], size, largest * np.sqrt(min(1.0, size.max())), kind)
    caption = (
        f"{seen}: sources blue ({n_shown[0]} drawn), targets orange ({n_shown[1]}); "
        f"{arcs.i.size:,} arcs, drawn in proportion to their mass."
    )
    if not moved.is_all:
        caption += " Faint: mass that takes no part."
    alt = f"Sources, targets and arcs between them: {seen}"
    return html.figure(svg.drawing(parts, alt, svg.WIDTH, max(height, 40.0)), caption)


def _line(moved: Moved, x: Vector, y: Vector) -> str:
    """Return points on a line: masses of sources above, of targets below, arcs between."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    scale = svg.Scale.of((*_ends(x), *_ends(y)), 8.0, svg.WIDTH - 8.0)
    n_bins = int(np.clip(max(x.size, y.size), 8, 120))
    edges = np.linspace(scale.low, scale.high, n_bins + 1)
    heights = [np.histogram(z, edges, weights=w)[0] for z, w in ((x, moved.a), (y, moved.b))]
    top = max(float(h.max()) for h in heights) or 1.0
    left, width = scale(edges[:-1]), (svg.WIDTH - 16.0) / n_bins
    feet, tall = (90.0, 190.0), 75.0
    parts = svg.arcs(
        np.column_stack([scale(x[arcs.i]), np.full(arcs.i.size, feet[0])]),
        np.column_stack([scale(y[arcs.j]), np.full(arcs.j.size, feet[1])]),
        arcs.times,
    )
    parts.append(svg.bars(left, width, feet[0], -tall * heights[0] / top, "from"))
    parts.append(svg.bars(left, width, feet[1], tall * heights[1] / top, "to"))
    parts += [
        svg.label(at, 286.0, f"{value:.4g}", where)
        for at, value, where in ((8.0, scale.low, "start"), (svg.WIDTH - 8, scale.high, "end"))
    ]
    caption = f"Sources above, targets below; {arcs.i.size:,} arcs in proportion to their mass."
    alt = "Masses along a line, and arcs from sources to targets"
    return html.figure(svg.drawing(parts, alt, svg.WIDTH, 292.0), caption)


def _ends(x: Vector) -> tuple[float, float]:
    return float(x.min()), float(x.max())


# -- anything else ---------------------------------------------------------------------------


def _blocks(plan: Plan) -> str:
    """Return the masses of blocks of rows and columns, on a scale of four decades."""
    masses, is_all = block_masses(plan, BLOCKS)
    share = np.log10(np.maximum(masses / (masses.max() or 1.0), 1e-4)) / 4 + 1
    n, m = plan.shape
    rows, cols = masses.shape
    caption = (
        f"The plan, {n:,} sources from top to bottom and {m:,} targets from left to right, in "
        f"{rows} × {cols} blocks; from dark to light, 10⁻⁴ to 1 of the heaviest block's mass."
    )
    if not is_all:
        caption += " Estimated from rows at equal distances."
    picture = html.image(raster.rising(share), "png", "Masses of the blocks of the plan")
    return html.figure(picture, caption)
