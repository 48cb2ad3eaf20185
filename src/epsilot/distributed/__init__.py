"""The same solvers on a Dask cluster: what is computed where, and what is sent for it.

Nothing of this is imported unless a client is named; it needs ``pip install
"epsilot[distributed]"``.
"""

from __future__ import annotations

from ..errors import ClusterError

__all__ = ["ClusterError"]
