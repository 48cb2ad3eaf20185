"""The same solvers on a Dask cluster: what is computed where, and what is sent for it.

Nothing of this is imported unless a client, a Dask array or this module is named; it needs ``pip
install "epsilot[distributed]"``.
"""

from __future__ import annotations

from ..errors import ClusterError
from .points import PointCloud
from .readers import Parquet

__all__ = ["ClusterError", "Parquet", "PointCloud"]
