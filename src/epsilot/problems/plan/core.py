"""What a plan is made of: nonnegative matrices known by their products."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from ..._types import Index, Matrix, Vector
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from ...kernels.vectors import matvec

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from .arcs import Arcs

#: Rows or columns of a larger problem that are kept: their indices, or all of them.
Kept = Index | slice


class Core(Protocol):
    """A nonnegative matrix K known by its products."""

    #: The array by which a file shows that it holds a core of this kind.
    mark: ClassVar[str]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""

    def rows(self, v: Vector) -> Vector:
        """Return K v."""

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d."""

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K, an array of the caller's own."""

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Core:
        """Return K on the kept rows and columns of a larger problem, zero elsewhere."""

    def cropped(self, geometry: Geometry, raised: float) -> Core:
        """Return K on the first rows and columns, whose costs are those of a geometry.

        ``raised`` is by how much the costs that K was made from are higher.
        """

    def detached(self) -> Self:
        """Return a core that later changes of the user's arrays do not reach."""

    def arrays(self) -> Arrays:
        """Return what a file needs to hold of K."""

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Self:
        """Return the core that a file holds, or say in a sentence what is wrong with it."""

    def is_finite(self) -> bool:
        """Tell whether nothing of K has overflowed."""

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""

    def tamed(self, p: Vector) -> Core:
        """Return a core for which products with vectors do not overflow."""

    def arcs(self) -> Arcs | None:
        """Return the entries of a core that has few, else None."""

    @property
    def is_remote(self) -> bool:
        """Whether products can stay with the workers of a cluster."""

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return K v, or Kᵀ v, with its entries on the workers; only if ``is_remote``."""


class Ordinary:
    """What most cores answer alike."""

    def detached(self) -> Self:
        """Return the core, which holds no array of the user's."""
        return self

    def is_finite(self) -> bool:
        """Tell whether nothing has overflowed: entries are sums of masses."""
        return True

    def tamed(self, p: Vector) -> Self:
        """Return the core, whose entries are finite."""
        return self

    def arcs(self) -> Arcs | None:
        """Return None: most entries may be positive."""
        return None

    @property
    def is_remote(self) -> bool:
        """False: entries are in this process."""
        return False

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Fail: there are no workers."""
        raise NotImplementedError


def priced_rows(geometry: Geometry, block: Callable[[int, int], Matrix], v: Vector) -> Vector:
    """Return (C * K) v for a K of which any block of rows can be had."""
    return np.concatenate([matvec(C * block(i, k), v) for i, k, C in geometry.blocks()])


def spread(x: Vector, index: Kept, size: int, fill: float) -> Vector:
    """Return a vector of ``size`` with ``x`` at ``index`` and ``fill`` elsewhere."""
    out = np.full(size, fill)
    out[index] = x
    return out
