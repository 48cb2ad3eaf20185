"""Products of plans with Dask arrays, which are Dask arrays themselves.

A plan on a cluster's geometry keeps what is computed with the workers; any other plan is sent to
where the array is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Vector
from ...errors import InvalidProblem
from ...kernels.vectors import dot

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    from .operator import Plan


def lazy_product(plan: Plan, V: DaskArray, is_transposed: bool) -> DaskArray:
    """Return X V, or Xᵀ V, a column at a time."""
    size, out = plan.shape if is_transposed else plan.shape[::-1]
    if V.ndim not in (1, 2) or V.shape[0] != size:
        raise InvalidProblem(
            f"the plan is multiplied by an array of shape {V.shape}; it must be a vector of {size} "
            "entries, or a matrix of such columns."
        )
    if not _is_spread(plan):
        chunks = ((out,), *V.rechunk({0: -1}).chunks[1:])
        operator = plan.T if is_transposed else plan
        return V.rechunk({0: -1}).map_blocks(operator.__matmul__, dtype=float, chunks=chunks)
    if V.ndim == 1:
        return _column(plan, np.asarray(V, np.float64), is_transposed)
    import dask.array

    columns = [np.asarray(V[:, j], np.float64) for j in range(V.shape[1])]
    return dask.array.stack([_column(plan, v, is_transposed) for v in columns], axis=1)


def _is_spread(core: Any) -> bool:
    """Tell whether a plan is that of potentials and costs on a cluster."""
    inner = getattr(core, "core", None)
    return hasattr(getattr(core, "geometry", None), "apply_there") or (
        inner is not None and _is_spread(inner)
    )


def _column(core: Any, v: Vector, is_transposed: bool) -> DaskArray:
    """Return a product whose entries stay with the workers."""
    if hasattr(core, "geometry"):
        f, g = (core.g, core.f) if is_transposed else (core.f, core.g)
        there: DaskArray = core.geometry.apply_there(is_transposed, f, g, core.eta, v)
        return there
    import dask.array

    if hasattr(core, "more"):
        inside, few = _column(core.core, v, is_transposed), core.more
        flow = few.cols(v) if is_transposed else few.rows(v)
        return inside + dask.array.from_array(flow, chunks=inside.chunks)
    if core.around is None:
        return core.mass * _column(core.core, v, is_transposed)
    s, t, e, d = core.around
    if is_transposed:
        s, t, e, d = t, s, d, e
    inside = _column(core.core, t * v, is_transposed)
    s, e = (dask.array.from_array(x, chunks=inside.chunks) for x in (s, e))
    return core.mass * (s * inside + e * dot(d, v))
