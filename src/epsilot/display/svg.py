"""Drawings in the text of a page: axes, lines and dots, in the page's own colours."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Matrix, Vector
from .text import scientific

#: Units of a drawing, which a page scales to the room there is.
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 12.0, 40.0
#: Sizes of dots and opacities of lines that are told apart.
LEVELS = 8

STYLE = """
svg { display: block; width: 100%; height: auto; overflow: visible }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint) }
svg .axis { stroke: var(--line); stroke-width: 1 } svg .aim { stroke: var(--faint);
  stroke-width: 1; stroke-dasharray: 4 3 } svg .curve { fill: none; stroke-width: 2;
  stroke-linejoin: round } svg .from { stroke: var(--from) } svg .to { stroke: var(--to) }
svg .dots { fill: none; stroke-linecap: round } svg .still { stroke-opacity: .25 }
svg .arcs { fill: none; stroke: var(--ink) } svg .band { fill: var(--from); fill-opacity: .15 }
svg .bars { stroke: none } svg .bars.from { fill: var(--from) } svg .bars.to { fill: var(--to) }
"""


@dataclass(frozen=True)
class Scale:
    """From numbers to a stretch of a drawing."""

    low: float
    high: float
    start: float
    stop: float
    is_log: bool = False

    @classmethod
    def of(cls, x: Iterable[float], start: float, stop: float, *, is_log: bool = False) -> Scale:
        """Return the scale that shows some numbers, with a little room around them."""
        values = np.fromiter(x, np.float64)
        low, high = float(values.min()), float(values.max())
        if is_log:
            room = (high / low) ** 0.05 if high > low else 2.0
            return cls(low / room, high * room, start, stop, True)
        room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low - room, high + room, start, stop)

    def __call__(self, x: Vector | float) -> Vector:
        """Return the places of numbers in the drawing."""
        low, high, x = self.low, self.high, np.asarray(x, np.float64)
        if self.is_log:
            low, high, x = math.log(low), math.log(high), np.log(x)
        return np.asarray(self.start + (x - low) / (high - low) * (self.stop - self.start))

    def ticks(self) -> list[float]:
        """Return round numbers on the scale: a few powers of ten, or a few equal steps."""
        if self.is_log:
            powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
            if len(powers) > 1:
                return [10.0**k for k in powers[:: -(-len(powers) // 5)]]
        room = self.high - self.low
        size = 10.0 ** math.floor(math.log10(room / 3))
        step = next(size * k for k in (1, 2, 5, 10) if room / (size * k) <= 5)
        first = math.ceil(self.low / step)
        return [step * k for k in range(first, math.floor(self.high / step) + 1)]


def drawing(parts: Iterable[str], alt: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    """Return a drawing, with what it shows in words for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[str]:
    """Return the two axes of a chart with their ticks and labels."""
    parts = []
    for at, value in zip(y(np.array(y.ticks())), y.ticks(), strict=True):
        parts.append(_line(x.start, at, x.stop, at, "axis"))
        parts.append(_text(x.start - 6, at + 4, _label(value, y), "end"))
    for at, value in zip(x(np.array(x.ticks())), x.ticks(), strict=True):
        parts.append(_line(at, y.start, at, y.start + 4, "axis"))
        parts.append(_text(at, y.start + 17, _label(value, x), "middle"))
    parts.append(_text((x.start + x.stop) / 2, y.start + 34, x_label, "middle"))
    parts.append(_text(x.start, y.stop - 1, y_label, "start"))
    return parts


def _label(value: float, scale: Scale) -> str:
    """Return a tick in words: powers of ten as such, others in the digits they differ by."""
    if scale.is_log and not 1e-2 <= value < 1e3:
        return scientific(value, 0).removeprefix("1·")
    digits = 2 if scale.is_log else max(0, 1 - math.floor(math.log10(scale.high - scale.low)))
    text = f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def level(x: Scale, at: float) -> str:
    """Return a dashed line across a chart."""
    return _line(x.start, at, x.stop, at, "aim")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def label(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Return a word in a drawing."""
    return _text(x, y, text, anchor)


def curve(x: Vector, y: Vector, kind: str) -> str:
    """Return a line through points."""
    return f'<path class="curve {kind}" d="M{_path(x, y)}"/>'


def band(x: Vector, low: Vector, high: Vector) -> str:
    """Return the area between two lines."""
    way = _path(np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1])))
    return f'<path class="band" d="M{way}Z"/>'


def _path(x: Vector, y: Vector) -> str:
    return "L".join(f"{u:.1f} {v:.1f}" for u, v in zip(x, y, strict=True))


def dots(places: Matrix, areas: Vector, largest: float, kind: str) -> list[str]:
    """Return dots whose areas are in proportion to numbers, of a few sizes."""
    found = areas > 0
    top = float(areas.max(initial=0.0))
    sizes = np.ceil(LEVELS * np.sqrt(areas / (top or 1.0)))
    parts = []
    for size in np.unique(sizes[found]):
        way = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places[found & (sizes == size)])
        width = 2 * largest * size / LEVELS
        parts.append(f'<path class="dots {kind}" stroke-width="{width:.2f}" d="{way}"/>')
    return parts


def arcs(starts: Matrix, ends: Matrix, masses: Vector) -> list[str]:
    """Return lines from places to places, the darker the more mass they carry."""
    sizes = np.ceil(LEVELS * np.sqrt(masses / masses.max(initial=0.0)))
    faintest = min(1.0, 60.0 / max(1, masses.size))
    parts = []
    for size in np.unique(sizes):
        kept = sizes == size
        lines = zip(starts[kept], ends[kept], strict=True)
        way = "".join(f"M{u[0]:.1f} {u[1]:.1f}L{v[0]:.1f} {v[1]:.1f}" for u, v in lines)
        opacity = max(0.15, faintest) * (0.3 + 0.7 * size / LEVELS)
        parts.append(f'<path class="arcs" stroke-opacity="{opacity:.2f}" d="{way}"/>')
    return parts


def arrows(starts: Matrix, ends: Matrix) -> str:
    """Return arrows from places to places."""
    way = []
    for (x, y), (u, v) in zip(starts, ends, strict=True):
        length = math.hypot(u - x, v - y) or 1.0
        size = min(5.0, 0.45 * length)
        a, b = size * (u - x) / length, size * (v - y) / length
        left, right = (u - a - 0.5 * b, v - b + 0.5 * a), (u - a + 0.5 * b, v - b - 0.5 * a)
        way.append(f"M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}M{left[0]:.1f} {left[1]:.1f}")
        way.append(f"L{u:.1f} {v:.1f}L{right[0]:.1f} {right[1]:.1f}")
    return f'<path class="arrows" d="{"".join(way)}"/>'


def bars(x: Vector, widths: float, foot: float, heights: Vector, kind: str) -> str:
    """Return bars on a line, downwards where heights are positive."""
    rows: Sequence[tuple[float, float]] = list(zip(x, heights, strict=True))
    way = "".join(f"M{u:.1f} {foot:.1f}h{widths:.1f}v{h:.1f}h{-widths:.1f}Z" for u, h in rows if h)
    return f'<path class="bars {kind}" d="{way}"/>'
