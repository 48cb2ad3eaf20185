"""A plan with a few more arcs than another one has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy import sparse

from ..._types import Matrix, Vector
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from .arcs import Arcs
from .core import Core, Kept, Ordinary
from .explicit import Explicit
from .gibbs import Gibbs

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


def plus(core: Core, more: Arcs) -> Core:
    """Return a core with the flow of some arcs added."""
    arcs = core.arcs()
    if arcs is None:
        return Total(core, more) if more.flow.size else core
    i, j, flow = (
        np.concatenate([getattr(x, name) for x in (arcs, more)]) for name in ("i", "j", "flow")
    )
    return Arcs.of(sparse.coo_array((flow, (i, j)), shape=core.shape))


@dataclass(frozen=True)
class Total(Ordinary):
    """K + the flow of some arcs."""

    mark: ClassVar[str] = "more.flow"

    core: Core
    more: Arcs

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.core.shape

    def rows(self, v: Vector) -> Vector:
        """Return the product with v."""
        return self.core.rows(v) + self.more.rows(v)

    def cols(self, u: Vector) -> Vector:
        """Return the product of the transpose with u."""
        return self.core.cols(u) + self.more.cols(u)

    def marginals(self) -> tuple[Vector, Vector]:
        """Return the sums of rows and of columns."""
        (r, c), (more_r, more_c) = self.core.marginals(), self.more.marginals()
        return r + more_r, c + more_c

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the product with v, its costs and C d."""
        mass, cost, shipped = self.core.price(geometry, v, d)
        more_mass, more_cost, _ = self.more.price(geometry, v, np.zeros_like(d))
        return mass + more_mass, cost + more_cost, shipped

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop``."""
        return self.core.block(start, stop) + self.more.block(start, stop)

    @property
    def is_remote(self) -> bool:
        """Whether products with K can stay with the workers of a cluster."""
        return self.core.is_remote

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return the product with v, with its entries on the workers."""
        import dask.array

        inside = self.core.remote_product(v, is_transposed)
        flow = self.more.cols(v) if is_transposed else self.more.rows(v)
        return inside + dask.array.from_array(flow, chunks=inside.chunks)

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Total:
        """Return both parts in a larger problem."""
        core = self.core.embedded(geometry, rows, cols)
        return Total(core, self.more.embedded(geometry, rows, cols))

    def cropped(self, geometry: Geometry, raised: float) -> Total:
        """Return the first rows and columns of both parts."""
        return Total(self.core.cropped(geometry, raised), self.more.cropped(geometry, raised))

    def detached(self) -> Self:
        """Return a core that later changes of the user's arrays do not reach."""
        return replace(self, core=self.core.detached())

    def arrays(self) -> Arrays:
        """Return the arrays of both parts."""
        parts = {"within": self.core, "more": self.more}
        return {
            f"{part}.{name}": x for part, core in parts.items() for name, x in core.arrays().items()
        }

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Self:
        """Return the core that a file holds, or say in a sentence what is wrong with it."""
        within = saved.under("within")
        kind: type[Core] = Explicit if Explicit.mark in within else Gibbs
        more = Arcs.from_arrays(saved.under("more"), geometry)
        return cls(kind.from_arrays(within, geometry), more)

    def is_finite(self) -> bool:
        """Tell whether nothing has overflowed."""
        return self.core.is_finite()

    def is_nonnegative(self) -> bool:
        """Tell whether no entry is negative."""
        return self.core.is_nonnegative() and self.more.is_nonnegative()

    def tamed(self, p: Vector) -> Total:
        """Return a core for which products with vectors do not overflow."""
        return replace(self, core=self.core.tamed(p))
