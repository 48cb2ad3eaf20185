"""The cost between the cells of two regular grids: a sum over the axes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .._types import FloatArray, Index, Matrix, Vector
from ..errors import InvalidProblem
from ..metrics import GRID_METRICS, METRICS
from ..wording import shown
from .axes import pooled, stretched
from .base import Call, Geometry, Halved, Lattice, Places
from .dense import Dense
from .ranges import check_range, grid_shape, grid_spacing
from .sweeps import KEPT_ENTRIES, Block
from .tree_index import Embedding

# Stored entries that take as long as one along an axis.
STORED_ENTRIES = 4
# Entries of a cost whose rows are computed in seconds.
ROWS_ENTRIES = 1 << 32
# Sums of whole numbers of so many bits are exact.
WHOLE_BITS = 52
# Entries of a pass up to which minima along an axis compare all pairs: a tenth of a second.
COMPARED_ENTRIES = 1 << 28


class Cells(Geometry):
    """Grids with a common origin and spacing, and what moving between their cells costs."""

    noun = "a grid"

    def __init__(
        self,
        shape_a: int | Sequence[int],
        shape_b: int | Sequence[int] | None = None,
        metric: str = GRID_METRICS[0],
        spacing: float | Sequence[float] = 1.0,
    ) -> None:
        self.shape_a = grid_shape(shape_a, "shape_a")
        self.shape_b = self.shape_a if shape_b is None else grid_shape(shape_b, "shape_b")
        if len(self.shape_a) != len(self.shape_b):
            raise InvalidProblem(
                f"the grids have {len(self.shape_a)} and {len(self.shape_b)} axes; both must have "
                "the same number."
            )
        if not isinstance(metric, str) or metric not in GRID_METRICS:
            raise InvalidProblem(
                f"metric is {shown(metric)}; a grid serves {' and '.join(map(repr, GRID_METRICS))} "
                "(use PointCloud on the cell centres for others)."
            )
        self.metric, self.spacing = metric, grid_spacing(spacing, len(self.shape_a))
        self.shape = math.prod(self.shape_a), math.prod(self.shape_b)
        self.shift = 0.0
        self.dimension = len(self.shape_a)
        self.has_rows = self.shape[0] * self.shape[1] <= ROWS_ENTRIES
        cells = (max(pair) - 1 for pair in zip(self.shape_a, self.shape_b, strict=True))
        largest = max(h * k for h, k in zip(self.spacing, cells, strict=True))
        what = f"cells with the spacing {shown(spacing)}"
        check_range(largest, METRICS[metric].power, len(self.spacing), what)

    def __repr__(self) -> str:
        return f"Grid({self.shape_a} to {self.shape_b}, {self.metric}, spacing {self.spacing})"

    @property
    def lattice(self) -> Lattice | None:
        """The cells, if costs add up along paths: with the l1 metric."""
        if self.metric != "cityblock":
            return None
        return Lattice(self.shape_a, self.shape_b, tuple(self.spacing))

    @property
    def places(self) -> Places | None:
        """The centres of the cells."""
        X, Y = (
            np.indices(shape).reshape(len(shape), -1).T * np.asarray(self.spacing)
            for shape in (self.shape_a, self.shape_b)
        )
        return Places(X, Y, self.metric)

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest cost: the same cell, and opposite corners."""
        far = (max(a, b) - 1 for a, b in zip(self.shape_a, self.shape_b, strict=True))
        cost = sum(self._along(k, steps) for k, steps in enumerate(far))
        return self.shift, self.shift + float(cost)

    def _along(self, axis: int, steps: ArrayLike) -> Matrix:
        """Return the cost of moving a number of cells along an axis."""
        distance = self.spacing[axis] * np.abs(steps)
        return distance if self.metric == "cityblock" else distance * distance

    def ctransform_error(self, f: Vector, g: Vector) -> float:
        """Return the error of a few roundings an axis, or a cell of it, and some to compare with C.

        Whole numbers of a power of two that costs are whole numbers of, too, are not rounded, but
        where an envelope of parabolas is looked up instead of all pairs. In the l1 metric costs
        are lowered to such numbers.
        """
        size = float(np.abs(f).max() + np.abs(g).max()) + self.bounds[1]
        cells = sum(map(max, self.shape_a, self.shape_b))
        if self.metric == "cityblock" or self.compares_pairs:
            unit = self._unit(size)
            if unit is not None and all((x == unit * np.rint(x / unit)).all() for x in (f, g)):
                return 0.0
            cells = cells if self.metric == "cityblock" else len(self.shape_a)
        return float((8 + 4 * cells) * np.finfo(float).eps * size)

    @property
    def compares_pairs(self) -> bool:
        """Whether minima of squares go through all pairs along an axis: quick, and exact."""
        return self.metric == "sqeuclidean" and self.pass_entries <= COMPARED_ENTRIES

    def round_down(self, g: Vector) -> Vector:
        """Lower a potential to whole numbers of a unit so fine that c-transforms do not round."""
        unit = self._unit(2 * (float(np.abs(g).max()) + self.bounds[1]))
        return g if unit is None else unit * np.floor(g / unit)

    def _unit(self, size: float) -> float | None:
        """Return the least power of two whose multiples up to a size add up exactly.

        None if costs are no such multiples, and cannot be lowered to some.
        """
        if not 0 < size < np.inf:
            return None
        power = math.frexp(size)[1] - WHOLE_BITS
        unit = math.ldexp(1.0, power)
        if self.metric == "cityblock":
            return unit if math.fmod(self.shift, unit) == 0 else None
        return unit if power <= -self._bits else None

    def _lowered_spacing(self, x: Vector) -> list[float]:
        """Return steps that add up to whole potentials without rounding, and none above its own.

        Minima of lowered costs are c-transforms of lower potentials, and no less feasible; where
        mass stays they are the same.
        """
        unit = self._unit(2 * (float(np.abs(x).max()) + self.bounds[1]))
        if unit is None or self.metric != "cityblock":
            return list(self.spacing)
        return [unit * math.floor(h / unit) for h in self.spacing]

    @cached_property
    def _bits(self) -> int:
        """Binary digits after the point that all costs do with."""
        spacing, shift = (
            max(x.as_integer_ratio()[1].bit_length() - 1 for x in numbers)
            for numbers in (self.spacing, [self.shift])
        )
        return max(METRICS[self.metric].degree * spacing, shift)

    def rescaled(self, power: int) -> Self:
        """Return the geometry of 2**power C."""
        power //= METRICS[self.metric].degree
        return type(self)(
            self.shape_a, self.shape_b, self.metric, [math.ldexp(h, power) for h in self.spacing]
        ).shifted(math.ldexp(self.shift, power))

    def shifted(self, delta: float) -> Self:
        """Return the geometry of C + delta."""
        if delta == 0:
            return self
        out = type(self)(self.shape_a, self.shape_b, self.metric, self.spacing)
        out.shift = self.shift + delta
        return out

    def restricted(self, rows: Index, cols: Index) -> Dense | None:
        """Return the stored costs between some cells, if a pass over them takes as little time."""
        if rows.size * cols.size > min(STORED_ENTRIES * self.pass_entries, KEPT_ENTRIES):
            return None
        C = self.entries(np.repeat(rows, cols.size), np.tile(cols, rows.size))
        points = self.embedding if self.metric == "sqeuclidean" else None
        return Dense.part(
            C.reshape(rows.size, cols.size),
            self.lattice and self.lattice.restricted(rows, cols),
            points and points._replace(X=points.X[rows], Y=points.Y[cols]),
        )

    def halved(self) -> Halved | None:
        """Return the cells twice as long along every axis, if both sides are the same grid."""
        if self.shape_a != self.shape_b:
            return None
        fine = self.shape_a
        shape = tuple(-(-n // 2) for n in fine)
        coarse = type(self)(shape, shape, self.metric, [2 * h for h in self.spacing])
        return Halved(
            coarse.shifted(self.shift),
            lambda p: np.ravel(pooled(p.reshape(fine))),
            lambda g: np.ravel(stretched(g.reshape(shape), fine)),
        )

    def call(self) -> Call:
        """Return the call on images, which are the weights."""
        keywords = {"metric": repr(self.metric)}
        spacing = set(self.spacing)
        if spacing != {1.0}:
            steps = tuple(map(float, self.spacing))
            keywords["spacing"] = repr(steps[0] if len(spacing) == 1 else steps)
        return Call("solve_grid", ("A", "B"), keywords, has_weights=False)

    @cached_property
    def pass_entries(self) -> int:
        """Entries that one pass works through: one, or one line, for every cell and axis."""
        pairs = list(zip(self.shape_a, self.shape_b, strict=True))
        lengths = [1 if self.metric == "cityblock" else max(pair) for pair in pairs]
        return max(self.shape) * sum(lengths)

    @property
    def embedding(self) -> Embedding:
        """The centres of the cells."""
        X, Y = (
            np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1) * self.spacing
            for shape in (self.shape_a, self.shape_b)
        )
        return Embedding(np.asarray(X), np.asarray(Y), METRICS[self.metric].code, self.shift)

    def miniature(self) -> Self:
        """Return a grid of two cells along every axis."""
        return type(self)((2,) * len(self.shape_a), None, self.metric, self.spacing)

    def digest(self) -> str:
        """Return a hash of shapes, metric, spacing and shift."""
        return hashlib.sha256(f"{self!r} {self.shift!r}".encode()).hexdigest()[:16]

    def entries(self, rows: Index, cols: Index) -> Vector:
        """Compute the costs of single pairs of cells."""
        out = np.full(rows.size, self.shift)
        sources, targets = (
            np.unravel_index(rows, self.shape_a),
            np.unravel_index(cols, self.shape_b),
        )
        for axis, (i, j) in enumerate(zip(sources, targets, strict=True)):
            out += self._along(axis, i - j)
        return out

    def single_blocks(self, unit: float) -> Iterator[Block]:
        """Yield blocks of C / unit in float32; those of small grids are kept for the next call."""
        if self.shape[0] * self.shape[1] > KEPT_ENTRIES:
            yield from super().single_blocks(unit)
            return
        if unit not in self._singles:
            self._singles.clear()
            self._singles[unit] = (self.matrix() * (1 / unit)).astype(np.float32)
        yield 0, self.shape[0], self._singles[unit]

    @cached_property
    def _singles(self) -> dict[float, FloatArray]:
        return {}

    def block(self, start: int, stop: int) -> Matrix:
        """Compute rows ``start:stop`` of C."""
        cells = np.unravel_index(np.arange(start, stop), self.shape_a)
        out = np.full((stop - start, *self.shape_b), self.shift)
        for axis, length in enumerate(self.shape_b):
            cost = self._along(axis, cells[axis][:, None] - np.arange(length))
            shape = [stop - start] + [1] * len(self.shape_b)
            shape[axis + 1] = length
            out += cost.reshape(shape)
        return out.reshape(stop - start, self.shape[1])
