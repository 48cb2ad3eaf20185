"""Draw SVG charts and PNG bitmaps for web pages, without other packages."""

from __future__ import annotations

import html
import math
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._types import Matrix, Vector
from .text import scientific

#: Size and margins of a chart, in SVG units; the page scales charts to the width available.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 40.0
#: Number of different dot sizes and line opacities.
N_SIZES = 8

STYLE = """
svg { display: block; width: 100%; height: auto; overflow: visible }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint) }
svg .axis { stroke: var(--line); stroke-width: 1 } svg .target { stroke: var(--faint);
  stroke-width: 1; stroke-dasharray: 4 3 } svg .curve { fill: none; stroke-width: 2;
  stroke-linejoin: round } svg .from { stroke: var(--from) } svg .to { stroke: var(--to) }
svg .dots { fill: none; stroke-linecap: round } svg .still { stroke-opacity: .25 }
svg .arcs { fill: none; stroke: var(--ink) } svg .band { fill: var(--from); fill-opacity: .15 }
svg .bars { stroke: none } svg .bars.from { fill: var(--from) } svg .bars.to { fill: var(--to) }
"""


@dataclass(frozen=True)
class AxisScale:
    """Map the numbers ``low`` to ``high`` to the SVG coordinates ``start`` to ``stop``."""

    low: float
    high: float
    start: float
    stop: float
    is_log: bool = False
    is_whole: bool = False  # ticks are whole numbers

    @classmethod
    def of(
        cls, x: Iterable[float], start: float, stop: float, *, is_log: bool = False
    ) -> AxisScale:
        """Return a scale that covers all numbers with a margin of 5 %."""
        values = np.fromiter(x, np.float64)
        low, high = float(values.min()), float(values.max())
        if is_log:
            margin = (high / low) ** 0.05 if high > low else 2.0
            return cls(low / margin, high * margin, start, stop, True)
        margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - margin, high + margin, start, stop)

    def __call__(self, x: Vector | float) -> Vector:
        """Return the SVG coordinates of numbers."""
        low, high, x = self.low, self.high, np.asarray(x, np.float64)
        if self.is_log:
            low, high, x = math.log(low), math.log(high), np.log(x)
        return np.asarray(self.start + (x - low) / (high - low) * (self.stop - self.start))

    def lengths(self, x: Vector | float) -> Vector:
        """Return lengths on a linear scale in SVG units."""
        return np.asarray(x) * (self.stop - self.start) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return about five round numbers on the scale, powers of ten if it is logarithmic."""
        if self.is_log:
            powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            if len(powers) > 1:
                return [10.0**k for k in powers[:: -(-len(powers) // 5)]]
        span = self.high - self.low
        size = 10.0 ** math.floor(math.log10(span / 3))
        size = max(size, 1.0) if self.is_whole else size
        step = next(size * k for k in (1, 2, 5, 10) if span / (size * k) <= 5)
        first = math.ceil(self.low / step)
        return [step * k for k in range(first, math.floor(self.high / step) + 1)]


def drawing(parts: Iterable[str], alt: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    """Return an SVG element from its parts; ``alt`` describes it for screen readers."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def axes(x: AxisScale, y: AxisScale, x_label: str, y_label: str) -> list[str]:
    """Return both axes of a chart with ticks and labels."""
    foot, top = max(y.start, y.stop), min(y.start, y.stop)
    parts = []
    for at, value in zip(y(np.array(y.ticks())), y.ticks(), strict=True):
        parts.append(_line(x.start, at, x.stop, at, "axis"))
        parts.append(_text(x.start - 6, at + 4, _label(value, y), "end"))
    parts += line_axis(x, foot, x_label)
    parts.append(_text(x.start, top - 5, y_label, "start"))
    return parts


def line_axis(x: AxisScale, foot: float, label: str, spacing: float = 17.0) -> list[str]:
    """Return a horizontal axis with ticks and its label, in lines of text with a spacing."""
    parts = [_line(x.start, foot, x.stop, foot, "axis")]
    for at, value in zip(x(np.array(x.ticks())), x.ticks(), strict=True):
        parts.append(_line(at, foot, at, foot + 4, "axis"))
        parts.append(_text(at, foot + spacing, _label(value, x), "middle"))
    return [*parts, _text((x.start + x.stop) / 2, foot + 2 * spacing, label, "middle")]


def _label(value: float, scale: AxisScale) -> str:
    """Return the text of a tick, with just enough digits to tell ticks apart."""
    span = math.floor(math.log10(scale.high - scale.low))
    if scale.is_log and not 1e-2 <= value < 1e3:
        digits = max(0, math.floor(math.log10(value)) - span + 1)
        mantissa, times, power = scientific(value, digits).partition("·")
        return f"{_short(mantissa)}{times}{power}".removeprefix("1·")
    digits = max(2 if scale.is_log else 0, 1 - span)
    return _short(f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.4g}")


def _short(number: str) -> str:
    """Return a number without the zeros that end its decimals."""
    return number.rstrip("0").rstrip(".") if "." in number else number


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def dashed_line(x: AxisScale, at: float) -> str:
    """Return a horizontal dashed line across a chart."""
    return _line(x.start, at, x.stop, at, "target")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def label(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Return a text element."""
    return _text(x, y, text, anchor)


def curve(x: Vector, y: Vector, kind: str) -> str:
    """Return a curve through points."""
    return f'<path class="curve {kind}" d="M{_path(x, y)}"/>'


def band(x: Vector, low: Vector, high: Vector) -> str:
    """Return the area between two curves."""
    path = _path(np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1])))
    return f'<path class="band" d="M{path}Z"/>'


def _path(x: Vector, y: Vector) -> str:
    return "L".join(f"{u:.1f} {v:.1f}" for u, v in zip(x, y, strict=True))


def dots(places: Matrix, areas: Vector, largest: float, kind: str) -> list[str]:
    """Return dots whose areas are proportional to numbers, in ``N_SIZES`` sizes."""
    found = areas > 0
    top = float(areas.max(initial=0.0))
    sizes = np.ceil(N_SIZES * np.sqrt(areas / (top or 1.0)))
    parts = []
    for size in np.unique(sizes[found]):
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[found & (sizes == size)])
        width = 2 * largest * size / N_SIZES
        parts.append(f'<path class="dots {kind}" stroke-width="{width:.2f}" d="{path}"/>')
    return parts


def arcs(starts: Matrix, ends: Matrix, masses: Vector) -> list[str]:
    """Return lines between points; lines that carry more mass are darker."""
    sizes = np.ceil(N_SIZES * np.sqrt(masses / masses.max(initial=0.0)))
    faintest = min(1.0, 60.0 / max(1, masses.size))
    parts = []
    for size in np.unique(sizes):
        kept = sizes == size
        lines = zip(starts[kept], ends[kept], strict=True)
        path = "".join(f"M{u[0]:.1f} {u[1]:.1f}L{v[0]:.1f} {v[1]:.1f}" for u, v in lines)
        opacity = max(0.15, faintest) * (0.3 + 0.7 * size / N_SIZES)
        parts.append(f'<path class="arcs" stroke-opacity="{opacity:.2f}" d="{path}"/>')
    return parts


def arrows(starts: Matrix, ends: Matrix) -> str:
    """Return arrows between points."""
    path = []
    for (x, y), (u, v) in zip(starts, ends, strict=True):
        length = math.hypot(u - x, v - y) or 1.0
        size = min(5.0, 0.45 * length)
        a, b = size * (u - x) / length, size * (v - y) / length
        left, right = (u - a - 0.5 * b, v - b + 0.5 * a), (u - a + 0.5 * b, v - b - 0.5 * a)
        path.append(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}M{left[0]:.1f} {left[1]:.1f}")
        path.append(f"L{u:.1f} {v:.1f}L{right[0]:.1f} {right[1]:.1f}")
    return f'<path class="arrows" d="{"".join(path)}"/>'


def bars(x: Vector, widths: Vector | float, foot: float, heights: Vector, kind: str) -> str:
    """Return bars on a horizontal line; positive heights point down."""
    path = "".join(
        f"M{u:.2f} {foot:.1f}h{w:.2f}v{h:.2f}h{-w:.2f}Z"
        for u, w, h in zip(x, np.broadcast_to(widths, x.shape), heights, strict=True)
        if h
    )
    return f'<path class="bars {kind}" d="{path}"/>'


# -- bitmaps ---------------------------------------------------------------------------------

#: Colour map of [0, 1], from dark to light; perceptually uniform, also in greyscale.
_SEQUENTIAL = (
    (0, 24, 69),
    (33, 67, 107),
    (89, 96, 112),
    (142, 133, 120),
    (199, 174, 96),
    (255, 234, 70),
)
#: Colour map of [-1, 1]: orange, white, blue.
_DIVERGING = ((179, 88, 6), (241, 163, 64), (247, 247, 247), (103, 169, 207), (5, 96, 160))


def png(cells: NDArray[np.uint8]) -> bytes:
    """Return a (height, width, 3) array of RGB values as a PNG file."""
    height, width, _ = cells.shape
    lines = np.concatenate((np.zeros((height, 1), np.uint8), cells.reshape(height, -1)), axis=1)
    return rgb_png(lines, width, depth=8, level=9)


def rgb_png(lines: NDArray[np.uint8], width: int, *, depth: int, level: int) -> bytes:
    """Return an RGB PNG file from its filtered lines, each with its filter byte first.

    ``depth`` is the number of bits per channel, ``level`` that of zlib's compression.
    """
    header = struct.pack(">IIBBBBB", width, len(lines), depth, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), level)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def sequential_png(shares: Matrix) -> bytes:
    """Return a PNG file of numbers in [0, 1], from dark to light."""
    return png(_coloured(shares, _SEQUENTIAL))


def diverging_png(shares: Matrix) -> bytes:
    """Return a PNG file of numbers in [-1, 1], from orange to blue."""
    return png(_coloured(0.5 + 0.5 * shares, _DIVERGING))


def diverging_colours() -> list[str]:
    """Return the colours of the map from orange to blue, for other libraries."""
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in _DIVERGING]


def _coloured(shares: Matrix, colours: tuple[tuple[int, ...], ...]) -> NDArray[np.uint8]:
    """Return the colours of numbers in [0, 1], interpolated between those of the map."""
    anchors = np.linspace(0.0, 1.0, len(colours))
    mixed = [np.interp(shares, anchors, channel) for channel in zip(*colours, strict=True)]
    return np.stack(mixed, axis=-1).round().astype(np.uint8)
