"""Products of plans with Dask arrays, which are Dask arrays themselves.

A plan on a cluster's geometry keeps what is computed with the workers; any other plan is sent to
where the array is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidProblem

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
    if not plan.is_remote:
        chunks = ((out,), *V.rechunk({0: -1}).chunks[1:])
        operator = plan.T if is_transposed else plan
        return V.rechunk({0: -1}).map_blocks(operator.__matmul__, dtype=float, chunks=chunks)
    if V.ndim == 1:
        return plan.remote_product(np.asarray(V, np.float64), is_transposed)
    import dask.array

    columns = [np.asarray(V[:, j], np.float64) for j in range(V.shape[1])]
    return dask.array.stack([plan.remote_product(v, is_transposed) for v in columns], axis=1)
