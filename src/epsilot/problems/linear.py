"""Optimal transport itself: a linear objective, and potentials below the costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._types import Potentials, Vector
from ..errors import CertificateError
from ..geometry import Geometry
from ..kernels.vectors import are_at_most, below
from .certificate import BUG
from .duals import both_centred
from .objective import Objective, Slopes, linear
from .plan import Plan

#: Share of the largest cost up to which an arc's reduced cost is rounding.
TIGHT = 1e-11


@dataclass(frozen=True)
class Transport(Objective):
    """min <C, X>; potentials are feasible if f_i + g_j <= C_ij."""

    quantity: ClassVar[str] = "transport cost"

    @property
    def shift(self) -> float:
        """The offset of the costs."""
        return self.problem.offset

    @property
    def size(self) -> float:
        """The largest cost."""
        return self.problem.cost_max

    def value(self, plan: Plan, cost: float) -> float:
        """Return <C, X>."""
        return cost

    def row_potential(self, g: Vector) -> Vector:
        """Return the c-transform."""
        return row_feasible(self.problem.geometry, g)

    def dual(self, f: Vector) -> tuple[Potentials, float]:
        """Return c-transforms of a row potential, and <p, f> + <q, g>."""
        potentials = dual_feasible(self.problem.geometry, f)
        return potentials, linear(self.problem, potentials)

    def dual_value(self, potentials: Potentials) -> float:
        """Return <p, f> + <q, g> of feasible potentials."""
        f, g = potentials
        if not are_at_most(f, self.problem.geometry.ctransform_rows(g)):
            raise CertificateError(f"the potentials exceed the costs. {BUG}")
        return linear(self.problem, potentials)

    def is_tight(self, plan: Plan, potentials: Potentials) -> bool:
        """Tell whether every arc that carries mass costs what its potentials say."""
        arcs = plan.core.arcs()
        if arcs is None:
            return True
        (f, g), geometry = potentials, self.problem.geometry
        excess = geometry.entries(arcs.i, arcs.j) - f[arcs.i] - g[arcs.j]
        return bool((excess <= TIGHT * self.problem.scale).all())

    @property
    def slopes(self) -> Slopes | None:
        """The potentials, centred: weights keep their totals."""
        return both_centred

    def to_user_potentials(self, potentials: Potentials) -> Potentials:
        """Return potentials with f_i + g_j <= M_ij in floating point.

        What the costs were shifted and scaled by was rounded, so f goes down by as much.
        """
        f, g = potentials
        problem = self.problem
        if problem.offset != 0:
            margin = np.finfo(float).eps * (problem.cost_max + np.abs(f).max())
            f = np.nextafter(f - margin + problem.offset, -np.inf)
        if problem.unit == 1:
            return f, g
        if problem.unit < 1:  # a product may be subnormal, and then is rounded
            return below(problem.unit * f), below(problem.unit * g)
        return problem.unit * f, problem.unit * g


def dual_feasible(geometry: Geometry, f: Vector) -> Potentials:
    """Return c-transforms (f', g') of a row potential: f'_i + g'_j <= C_ij in floating point.

    A constant that f carries would cost digits and is taken off: the largest becomes (nearly) 0.
    """
    g = geometry.round_down(geometry.ctransform_cols(f - f.max()))
    return row_feasible(geometry, g), g


def row_feasible(geometry: Geometry, g: Vector) -> Vector:
    """Return the c-transform f of a column potential: f_i + g_j <= C_ij in floating point."""
    f = geometry.ctransform_rows(g)
    error = geometry.ctransform_error(f, g)
    return below(f - error if error else f)
