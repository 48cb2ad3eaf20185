"""The plan of two potentials, of which nothing else is stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._types import Matrix, Vector
from ...errors import InvalidProblem
from ...files.saved import Arrays, Saved
from ...geometry import Geometry
from ...kernels.vectors import are_between, log
from ..duals import softmin
from .core import Kept, Ordinary, priced_rows, spread

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


@dataclass(frozen=True)
class Gibbs(Ordinary):
    """K = exp((f + g - C) / η), in O(n + m) memory."""

    mark: ClassVar[str] = "eta"

    geometry: Geometry
    f: Vector
    g: Vector
    eta: float

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.geometry.shape

    def rows(self, v: Vector) -> Vector:
        """Return K v."""
        return self.geometry.apply_rows(self.f, self.g, self.eta, v)

    def cols(self, u: Vector) -> Vector:
        """Return Kᵀ u."""
        return self.geometry.apply_cols(self.f, self.g, self.eta, u)

    def marginals(self) -> tuple[Vector, Vector]:
        """Return K 1 and Kᵀ 1."""
        return self.geometry.marginals(self.f, self.g, self.eta)

    def price(self, geometry: Geometry, v: Vector, d: Vector) -> tuple[Vector, Vector, Vector]:
        """Return K v, (C * K) v and C d, for the plan's own cost or another one."""
        if geometry.is_same(self.geometry):
            return geometry.price_rows(self.f, self.g, self.eta, v, d)
        return self.rows(v), priced_rows(geometry, self.block, v), geometry.matvec(d)

    def block(self, start: int, stop: int) -> Matrix:
        """Return rows ``start:stop`` of K."""
        return self.geometry.gibbs(self.f, self.g, self.eta, start, stop)

    @property
    def is_remote(self) -> bool:
        """Whether the costs are with the workers of a cluster."""
        return self.geometry.is_remote

    def remote_product(self, v: Vector, is_transposed: bool) -> DaskArray:
        """Return K v, or Kᵀ v, with its entries on the workers."""
        f, g = (self.g, self.f) if is_transposed else (self.f, self.g)
        return self.geometry.apply_there(is_transposed, f, g, self.eta, v)

    def embedded(self, geometry: Geometry, rows: Kept, cols: Kept) -> Gibbs:
        """Return the plan of potentials that are -inf elsewhere."""
        n, m = geometry.shape
        f, g = spread(self.f, rows, n, -np.inf), spread(self.g, cols, m, -np.inf)
        return Gibbs(geometry, f, g, self.eta)

    def cropped(self, geometry: Geometry, raised: float) -> Gibbs:
        """Return the plan of the first potentials."""
        n, m = geometry.shape
        return Gibbs(geometry, self.f[:n] - raised, np.ascontiguousarray(self.g[:m]), self.eta)

    def detached(self) -> Gibbs:
        """Return the plan with costs that later changes of the user's arrays do not reach."""
        return replace(self, geometry=self.geometry.detached())

    def arrays(self) -> Arrays:
        """Return the potentials and η."""
        return {"f": self.f, "g": self.g, "eta": np.array(self.eta)}

    @classmethod
    def from_arrays(cls, saved: Saved, geometry: Geometry) -> Gibbs:
        """Return the plan of saved potentials."""
        n, m = geometry.shape
        f, g, eta = saved.vector("f", (n,)), saved.vector("g", (m,)), float(saved.vector("eta", ()))
        if not 0 < eta < math.inf:
            raise InvalidProblem(f"the saved plan has η = {eta}; it must be positive and finite.")
        return cls(geometry, f, g, eta)

    def is_finite(self) -> bool:
        """Tell whether the potentials are usable: NaN and +inf mark an overflow."""
        return are_between(self.f, -np.inf, np.inf) and are_between(self.g, -np.inf, np.inf)

    def is_nonnegative(self) -> bool:
        """Tell that no exponential is negative."""
        return True

    def tamed(self, p: Vector) -> Gibbs:
        """Return the plan with row sums p, for potentials whose exponentials overflow."""
        lse = self.geometry.lse_rows(self.g, self.eta)
        return replace(self, f=softmin(log(p), lse, self.eta))
