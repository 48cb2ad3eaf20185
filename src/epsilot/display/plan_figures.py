"""Draw where a transport plan moves mass, as SVG: images, points, a line, or blocks of the plan."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector
from . import charts, html
from .plan_samples import (
    LIMITS,
    FigureLimits,
    LineBins,
    MovedMass,
    SampledArcs,
    block_masses,
    cell_sums,
    grid_shape,
    is_quick,
    largest_entries,
    line_bins,
    mass_and_displacement,
    principal_plane,
    sampled,
    sampled_arcs,
)
from .text import scientific

STYLE = """
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr));
  gap: 1.25rem 2rem; align-items: start } .pictures figure { margin: 0 }
.pictures img { display: block; width: 100%; height: auto; image-rendering: pixelated;
  border-radius: 4px } .pictures svg image { image-rendering: pixelated }
.pictures .scroll { margin: 0 } .pictures table { width: 100% }
.pictures td { text-align: right } .wide { grid-column: 1 / -1; overflow-x: auto }
.wide svg { min-width: 38rem }
@media (max-width: 40rem) { .pictures svg text { font-size: 14px } .wide svg { min-width: 0 }
  .wide svg text { font-size: 26px } }
svg .arrows { fill: none; stroke: #111; stroke-width: 1.1; stroke-linecap: round }
"""
#: Width of a picture of points on a line, which has the page to itself, in SVG units.
LINE_WIDTH = 2 * charts.WIDTH
#: Between its lines of text, and below its axis: text is larger on narrow screens.
LINE_SPACING, LINE_BOTTOM = 27.0, 62.0
#: Side of a thumbnail, in SVG units.
THUMBNAIL_SIDE = 180.0


def figures_of(moved: MovedMass, X: Matrix | None, Y: Matrix | None) -> str:
    """Return the figures of a plan between points X and Y, or of its blocks if they are None."""
    if X is None or Y is None:
        figures = [_blocks(moved), _largest(moved)]
    elif (shape := grid_shape(X)) is not None and grid_shape(Y) is not None:
        figures = _images(moved, X, Y, shape)
    elif X.shape[1] == 1:
        figures = [_line(moved, X[:, 0], Y[:, 0])]
    else:
        figures = _clouds(moved, X, Y)
    return f'<div class="pictures">{"".join(figures)}</div>'


def thumbnail(
    moved: MovedMass, X: Matrix | None, Y: Matrix | None, limits: FigureLimits
) -> str | None:
    """Return a small SVG picture of a plan, without axes; None if it would take too long."""
    if X is None or Y is None:
        masses, _ = block_masses(moved.plan, limits)
        return bitmap(charts.sequential_png(_decades(masses)), masses.shape, "Blocks of the plan")
    if (shape := grid_shape(X)) is not None and grid_shape(Y) is not None:
        if not is_quick(moved.plan, limits):
            return None
        return _displaced(moved, X, Y, shape, THUMBNAIL_SIDE, limits)
    arcs = sampled_arcs(moved.plan, moved.sent, limits)
    if X.shape[1] == 1:
        return _small_line(moved, X[:, 0], Y[:, 0], arcs, limits)
    if X.shape[1] > 2:
        X, Y = principal_plane(X, Y)
    both = np.concatenate((X, Y))
    low, extent = both.min(axis=0), np.ptp(both, axis=0)
    side, unit = THUMBNAIL_SIDE - 12.0, (THUMBNAIL_SIDE - 12.0) / (float(extent.max()) or 1.0)
    height = 12.0 + max(unit * float(extent[1]), 0.25 * side)

    def placed(x: Matrix) -> Matrix:
        scaled = 6.0 + unit * (x - low)
        return np.column_stack([scaled[:, 0], height - scaled[:, 1]])

    parts, _ = _points(moved, placed(X), placed(Y), arcs, side, limits)
    return charts.drawing(parts, "Points, and arcs of the plan", THUMBNAIL_SIDE, height)


def coordinate_names(dimension: int) -> tuple[str, ...]:
    """Return the names of the axes of a picture of points."""
    if dimension <= 3:
        return tuple("xyz"[:dimension])
    return "first principal direction", "second principal direction"


# -- images ----------------------------------------------------------------------------------


def _images(moved: MovedMass, X: Matrix, Y: Matrix, shape: tuple[int, int]) -> list[str]:
    """Return both images on one colour scale, and the mean displacement."""
    sides = (moved.a, shape), (moved.b, grid_shape(Y) or shape)
    fields = [_shrunk(w, side, LIMITS.image_side) for w, side in sides]
    top = max(float(field.max()) for field in fields) or 1.0
    names = "Source", "Target"
    figures = [
        html.figure(
            html.image(charts.sequential_png(field / top), "png", f"{name} masses as an image"),
            f"{name}, {side[0]} × {side[1]}: from dark to light, 0 to {scientific(top)} per pixel.",
        )
        for name, field, (_, side) in zip(names, fields, sides, strict=True)
    ]
    picture = _displaced(moved, X, Y, shape, charts.WIDTH, LIMITS)
    caption = "Mean displacement; blue where mass leaves, orange where it arrives."
    return [*figures, html.figure(picture, caption)]


def _shrunk(masses: Vector, shape: tuple[int, int], most: int) -> Matrix:
    """Return an image with at most ``most`` pixels per side, summed over cells."""
    cell = max(1, -(-max(shape) // most))
    height, width = (-(-side // cell) for side in shape)
    return cell_sums(masses[:, None], shape, cell).reshape(height, width)


def _displaced(
    moved: MovedMass,
    X: Matrix,
    Y: Matrix,
    shape: tuple[int, int],
    side: float,
    limits: FigureLimits,
) -> str:
    """Return the mean displacement of each cell's mass over source minus target."""
    mass, steps = mass_and_displacement(X, Y, moved.plan)
    cell = max(1, -(-max(shape) // limits.arrows_per_side))
    sums = (cell_sums(x, shape, cell) for x in (mass[:, None] * X, mass[:, None], steps))
    place, mass_of, step = sums
    strength = np.linalg.norm(step, axis=1)
    shown = strength > 0.02 * strength.max(initial=0.0)
    start = place[shown] / mass_of[shown]
    stop = start + step[shown] / mass_of[shown]
    unit = side / shape[1]
    corner, far = X[0], X[-1]
    scale = (np.array(shape) - 1) / np.where(far > corner, far - corner, 1.0)
    start, stop = ((unit * ((x - corner) * scale + 0.5))[:, ::-1] for x in (start, stop))
    content = charts.diverging_png(_surplus(moved, shape, grid_shape(Y), limits.image_side))
    alt = "Arrows from the place of each cell's mass to its mean destination"
    return bitmap(content, shape, alt, side, charts.arrows(start, stop))


def bitmap(
    content: bytes,
    shape: tuple[int, ...],
    alt: str,
    side: float = THUMBNAIL_SIDE,
    above: str = "",
) -> str:
    """Return an SVG drawing of a PNG file with pixels of equal sides."""
    height = side * shape[0] / shape[1]
    size = f'width="{side:g}" height="{height:.1f}" preserveAspectRatio="none"'
    picture = html.image(content, "png", "").replace("<img src=", f"<image {size} href=")
    parts = [picture.replace(' alt=""', "").removesuffix(">") + "/>", above]
    return charts.drawing(parts, alt, side, height)


def _surplus(
    moved: MovedMass, shape: tuple[int, int], other: tuple[int, int] | None, most: int
) -> Matrix:
    """Return source minus target scaled to [-1, 1]; zero if the images differ in shape."""
    if shape != other:
        return np.zeros((1, 1))
    surplus = _shrunk(moved.a, shape, most) - _shrunk(moved.b, shape, most)
    return np.asarray(surplus / (np.abs(surplus).max() or 1.0))


# -- points ----------------------------------------------------------------------------------


def _clouds(moved: MovedMass, X: Matrix, Y: Matrix) -> list[str]:
    """Return points and arcs in the plane, in three projections, or in the principal plane."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    distances = _distances(X, Y, arcs)
    dimension, names = X.shape[1], coordinate_names(X.shape[1])
    if dimension > 3:
        X, Y = principal_plane(X, Y)
    planes = [(0, 1), (0, 2), (1, 2)] if dimension == 3 else [(0, 1)]
    figures = []
    for u, v in planes:
        seen = f"{names[u]} and {names[v]}"
        if dimension > 3:
            seen = (
                f"All {dimension} coordinates, projected on the two directions of largest variance"
            )
        plane = X[:, (u, v)], Y[:, (u, v)]
        figures.append(_cloud(moved, *plane, arcs, (names[u], names[v]), seen))
    return [*figures, distances]


def _cloud(
    moved: MovedMass,
    X: Matrix,
    Y: Matrix,
    arcs: SampledArcs,
    names: tuple[str, str],
    seen: str,
) -> str:
    """Return the points of both sides, and arcs between them, in one plane with axes."""
    both = np.concatenate((X, Y))
    low, extent = both.min(axis=0), np.ptp(both, axis=0)
    extent = np.maximum(extent, 0.2 * (float(extent.max()) or 1.0))
    inside = charts.WIDTH - charts.LEFT - charts.RIGHT
    unit = inside / (1.1 * float(extent.max()))
    width, height = 1.1 * unit * extent
    top = charts.TOP + 12
    x_axis = charts.AxisScale(
        low[0] - 0.05 * extent[0], low[0] + 1.05 * extent[0], charts.LEFT, charts.LEFT + width
    )
    y_axis = charts.AxisScale(
        low[1] - 0.05 * extent[1], low[1] + 1.05 * extent[1], top + height, top
    )

    def placed(x: Matrix) -> Matrix:
        return np.column_stack([x_axis(x[:, 0]), y_axis(x[:, 1])])

    parts, n_shown = _points(moved, placed(X), placed(Y), arcs, inside, LIMITS)
    caption = (
        f"{seen}: sources blue ({n_shown[0]} drawn), targets orange ({n_shown[1]}); "
        f"{arcs.i.size:,} arcs, sampled in proportion to their mass."
    )
    if not moved.is_all:
        caption += " Faint: mass that is not transported."
    alt = f"Sources, targets and arcs between them: {seen}"
    total = charts.LEFT + width + charts.RIGHT, top + height + charts.BOTTOM
    return html.figure(
        charts.drawing([*charts.axes(x_axis, y_axis, *names), *parts], alt, *total), caption
    )


def _points(
    moved: MovedMass,
    X: Matrix,
    Y: Matrix,
    arcs: SampledArcs,
    width: float,
    limits: FigureLimits,
) -> tuple[list[str], list[str]]:
    """Return arcs and dots at SVG coordinates, and how many points of each side are drawn."""
    parts = charts.arcs(X[arcs.i], Y[arcs.j], arcs.times)
    sides = (X, moved.a, moved.sent, "from"), (Y, moved.b, moved.received, "to")
    n_shown = []
    for places, has, takes_part, kind in sides:
        shown = sampled(has, limits.points)
        n_shown.append(f"{shown.size:,} of {has.size:,}")
        largest = float(np.clip(0.15 * width / np.sqrt(shown.size), 1.0, 4.0))
        if not moved.is_all:
            parts += charts.dots(places[shown], has[shown], largest, f"{kind} still")
        size = takes_part[shown] / (has[shown].max(initial=0.0) or 1.0)
        parts += charts.dots(places[shown], size, largest * np.sqrt(min(1.0, size.max())), kind)
    return parts, n_shown


def _distances(X: Matrix, Y: Matrix, arcs: SampledArcs) -> str:
    """Return a histogram of the distances that mass moves, of a sample of arcs."""
    moved = np.linalg.norm(X[arcs.i] - Y[arcs.j], axis=1)
    edges = np.linspace(0.0, float(moved.max()) or 1.0, 25)
    shares = np.histogram(moved, edges, weights=100 * arcs.times / arcs.times.sum())[0]
    x = charts.AxisScale(0.0, edges[-1], charts.LEFT, charts.WIDTH - charts.RIGHT)
    y = charts.AxisScale(0.0, 1.05 * shares.max(), charts.HEIGHT - charts.BOTTOM, charts.TOP + 12)
    parts = charts.axes(x, y, "distance moved (Euclidean)", "share of the mass (%)")
    width = float(x(edges[1]) - x(0.0)) - 1.0
    parts.append(charts.bars(x(edges[:-1]), width, y.start, y(shares) - y.start, "from"))
    middle = float(np.average(moved, weights=arcs.times))
    caption = f"How far mass moves: {middle:.4g} on average, {edges[-1]:.4g} at most (of the arcs)."
    return html.figure(charts.drawing(parts, "Histogram of the distances moved"), caption)


# -- points on a line ------------------------------------------------------------------------


def _line(moved: MovedMass, x: Vector, y: Vector) -> str:
    """Return points on a line: sources as bars above, targets below, arcs between."""
    arcs = sampled_arcs(moved.plan, moved.sent)
    bins = line_bins(x), line_bins(y)
    scale = _line_scale(bins, charts.LEFT, LINE_WIDTH - charts.RIGHT)
    feet, tall = (100.0, 190.0), 75.0
    parts = _facing_bars(moved, (x, y), bins, scale, feet, tall)
    parts += charts.arcs(
        np.column_stack([scale(x[arcs.i]), np.full(arcs.i.size, feet[0])]),
        np.column_stack([scale(y[arcs.j]), np.full(arcs.j.size, feet[1])]),
        arcs.times,
    )
    foot = feet[1] + tall + 4.0
    parts += charts.line_axis(scale, foot, "position", LINE_SPACING)
    parts.append(charts.label(scale.start, 20.0, "sources"))
    parts.append(charts.label(scale.start, foot - 6.0, "targets"))
    caption = (
        "Mass per length on one scale: sources above, targets below, downwards; "
        f"{arcs.i.size:,} arcs, sampled by their mass."
    )
    alt = "Masses along a line, and arcs from sources to targets"
    figure = html.figure(charts.drawing(parts, alt, LINE_WIDTH, foot + LINE_BOTTOM), caption)
    return figure.replace("<figure>", '<figure class="wide">', 1)


def _line_scale(bins: tuple[LineBins, LineBins], start: float, stop: float) -> charts.AxisScale:
    """Return a scale that covers all bars."""
    ends = [end for x in bins for end in (x.left[0], x.left[-1] + x.width[-1])]
    return charts.AxisScale.of(ends, start, stop)


def _facing_bars(
    moved: MovedMass,
    places: tuple[Vector, Vector],
    bins: tuple[LineBins, LineBins],
    scale: charts.AxisScale,
    feet: tuple[float, float],
    tall: float,
) -> list[str]:
    """Return the histogram of the sources upwards and that of the targets downwards."""
    weights = moved.a, moved.b
    heights = [own.heights(x, w) for own, x, w in zip(bins, places, weights, strict=True)]
    top = max(float(h.max()) for h in heights) or 1.0
    sides = zip(bins, heights, feet, (-tall, tall), ("from", "to"), strict=True)
    return [
        charts.bars(scale(own.left), scale.lengths(own.width), foot, reach * h / top, kind)
        for own, h, foot, reach, kind in sides
    ]


def _small_line(
    moved: MovedMass, x: Vector, y: Vector, arcs: SampledArcs, limits: FigureLimits
) -> str:
    """Return the thumbnail of points on a line."""
    bins = line_bins(x, limits.bars), line_bins(y, limits.bars)
    scale = _line_scale(bins, 0.0, THUMBNAIL_SIDE)
    feet, tall = (40.0, 76.0), 36.0
    parts = _facing_bars(moved, (x, y), bins, scale, feet, tall)
    parts += charts.arcs(
        np.column_stack([scale(x[arcs.i]), np.full(arcs.i.size, feet[0])]),
        np.column_stack([scale(y[arcs.j]), np.full(arcs.j.size, feet[1])]),
        arcs.times,
    )
    return charts.drawing(parts, "Masses along a line, and arcs", THUMBNAIL_SIDE, feet[1] + 40.0)


# -- blocks of a plan ------------------------------------------------------------------------


def _blocks(moved: MovedMass) -> str:
    """Return the masses of blocks of rows and columns, on a logarithmic scale of four decades."""
    masses, is_all = block_masses(moved.plan)
    n, m = moved.plan.shape
    rows, cols = masses.shape
    caption = (
        f"The plan in {rows} × {cols} blocks; from dark to light, 10⁻⁴ to 1 of the largest mass."
    )
    if not is_all:
        caption += " Estimated from equally spaced rows."
    width = charts.WIDTH - charts.LEFT - charts.RIGHT
    height = width * min(max(rows / cols, 0.25), 1.25)
    top = charts.TOP + 12
    x = charts.AxisScale(-0.5, m - 0.5, charts.LEFT, charts.LEFT + width, is_whole=True)
    y = charts.AxisScale(-0.5, n - 0.5, top, top + height, is_whole=True)
    size = f'x="{charts.LEFT:g}" y="{top:g}" width="{width:g}" height="{height:.1f}"'
    picture = html.image(charts.sequential_png(_decades(masses)), "png", "").replace(' alt=""', "")
    image = picture.replace("<img src=", f'<image {size} preserveAspectRatio="none" href=')
    axes = charts.axes(x, y, "target j", "source i, downwards")
    parts = [*axes, image.removesuffix(">") + "/>"]
    alt = "Masses of the blocks of the plan"
    return html.figure(
        charts.drawing(parts, alt, charts.WIDTH, top + height + charts.BOTTOM), caption
    )


def _decades(masses: Matrix) -> Matrix:
    """Return masses on a logarithmic scale from 10⁻⁴ of the largest, 0, to the largest, 1."""
    share = np.maximum(masses / (masses.max() or 1.0), 1e-4)
    return np.asarray(np.log10(share) / 4 + 1)


def _largest(moved: MovedMass) -> str:
    """Return the table of the largest entries of the plan."""
    total = float(moved.sent.sum()) or 1.0
    rows = [
        (f"{x.i:,}", f"{x.j:,}", f"{x.mass:.4g}", f"{100 * x.mass / total:.3g} %")
        for x in largest_entries(moved.plan)
    ]
    if not rows:
        return ""
    columns = "source i", "target j", "mass", "share"
    return html.table(columns, rows, "The largest entries of the plan, counted from 0.")
