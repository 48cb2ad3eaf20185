"""Run the same solvers on a Dask cluster.

The package imports this module only if a client, a Dask array or the module itself is used. It
needs ``pip install "epsilot[distributed]"``.
"""

from __future__ import annotations

from ..errors import ClusterError
from .points import PointCloud
from .tiles import Parquet

__all__ = ["ClusterError", "Parquet", "PointCloud"]
