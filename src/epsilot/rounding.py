"""Rounding onto the transport polytope (Altschuler, Weed, Rigollet 2017, Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._types import Vector
from .geometry import Geometry
from .kernels import rounding as kernels
from .kernels.vectors import dot
from .plan import Core, Plan


class Rounded(NamedTuple):
    """A feasible plan, its cost (0 without a geometry), and the l1 error it started from."""

    plan: Plan
    cost: float
    marginal_error: float


def round_onto(core: Core, p: Vector, q: Vector, geometry: Geometry | None = None) -> Rounded:
    r"""Return the nearest-by-scaling plan with marginals p and q, priced on the way.

    Rows, then columns, that carry too much are scaled down; what is then missing is added as
    a rank-one term. For a core of mass 1 the plan moves by at most the marginal error
    :math:`\delta` in l1, and its cost rises by at most :math:`\frac12\delta(\max C-\min C)`.
    Three passes over the core.

    Parameters
    ----------
    core : Core
        Nonnegative (n, m) matrix.
    p, q : (n,), (m,) arrays
        Marginals of equal total.
    geometry : Geometry, optional
        Prices the result.
    """
    r, c = core.marginals()
    s, t, e, d = (np.empty_like(x) for x in (p, q, p, q))
    error = kernels.shrink(r, p, s) + kernels.shrink(c, q, t)
    c = core.cols(s)
    kernels.shrink(c, q, t)
    missing = kernels.shortfall(c, t, q, d)
    if geometry is None:
        mass, cost, shipped = core.rows(t), np.zeros_like(p), np.zeros_like(p)
    else:
        mass, cost, shipped = core.price(geometry, t, d)
    missing = max(kernels.shortfall(mass, s, p, e), missing)
    if missing > 0:
        d /= missing
    else:
        missing = 1.0
    return Rounded(Plan(core, s, t, e, d), dot(s, cost) + dot(e, shipped) / missing, error)
