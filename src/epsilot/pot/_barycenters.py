"""Replace POT's barycentres of histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from ot.backend import get_backend
from ot.utils import list_to_array
from scipy.optimize import OptimizeResult

from ..api.barycenter import barycenter
from ._entropic import wants_iterations
from ._modules import original, replaces
from ._tuning import TUNING

#: POT's names of algorithms; the certified barycentre is that of all of them.
METHODS = {"sinkhorn", "sinkhorn_log", "sinkhorn_stabilized"}


@replaces("lp.barycenter")
def lp_barycenter(
    A: Any,
    M: Any,
    weights: Any = None,
    verbose: bool = False,
    log: bool = False,
    solver: str | None = "highs-ipm",
) -> Any:
    """Return a barycentre of the histograms in the columns of A, as :func:`ot.lp.barycenter` does.

    ``log=True`` also returns an ``OptimizeResult`` with ``x``, ``fun``, ``lower_bound``, ``gap``.
    """
    histograms, costs = np.asarray(A, np.float64), np.asarray(M, np.float64)
    assert weights is None or len(weights) == histograms.shape[1]
    total = 1.0 if weights is None else float(np.sum(weights))
    found = barycenter(histograms.T, costs, weights, rtol=TUNING.barycenter_rtol, on_limit="ignore")
    if not log:
        return found.barycenter
    result = OptimizeResult(
        x=found.barycenter, fun=total * found.value, success=found.converged, status=0
    )
    result["lower_bound"], result["gap"] = total * found.lower_bound, total * found.gap
    return found.barycenter, result


@replaces("bregman.barycenter")
def bregman_barycenter(
    A: Any,
    M: Any,
    reg: float,
    weights: Any = None,
    method: str = "sinkhorn",
    numItermax: int = 10000,
    stopThr: float = 1e-4,
    verbose: bool = False,
    log: bool = False,
    warn: bool = True,
    **kwargs: Any,
) -> Any:
    """Return an entropic barycentre of the columns of A, as :func:`ot.bregman.barycenter` does.

    All values of ``method`` give the same certified barycentre. ``log=True`` also returns ``err``,
    ``niter``, ``lower_bound`` and ``gap``. Costs that are not symmetric are POT's.
    """
    A, M = list_to_array(A, M)
    nx = get_backend(A, M)
    costs = np.asarray(nx.to_numpy(nx.detach(M)), np.float64)
    histograms = np.asarray(nx.to_numpy(nx.detach(A)), np.float64)
    if (
        method.lower() not in METHODS
        or wants_iterations(numItermax, stopThr)
        or any(getattr(x, "requires_grad", False) for x in (A, M, weights))
        or costs.shape[0] != costs.shape[1]
        or not (costs == costs.T).all()
    ):
        options = weights, method, numItermax, stopThr, verbose, log, warn
        return original(bregman_barycenter)(A, M, reg, *options, **kwargs)
    assert weights is None or len(weights) == histograms.shape[1]
    shares = None if weights is None else nx.to_numpy(weights)
    size, mass = max(float(np.abs(costs).max()), float(reg)), float(histograms[:, 0].sum())
    tol = TUNING.barycenter_tol_share * size * mass
    keywords: dict[str, Any] = {"reg": float(reg), "tol": tol, "on_limit": "ignore"}
    found = barycenter(histograms.T, costs, shares, **keywords)
    b = nx.from_numpy(found.barycenter, type_as=A)
    if not log:
        return b
    entries = {"err": [found.marginal_error], "niter": found.n_iter}
    return b, entries | {"lower_bound": found.lower_bound, "gap": found.gap}
