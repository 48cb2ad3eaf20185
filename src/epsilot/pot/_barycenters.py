"""Replace POT's barycentres of histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from ot.backend import get_backend
from ot.utils import list_to_array
from scipy.optimize import OptimizeResult

from ..api.barycenter import barycenter, barycenter_sample
from ._arrays import is_differentiated, leave_iterations
from ._modules import leave_if, leaving_refusals, replaces
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
    leave_if(method.lower() not in METHODS, f"method={method!r} is POT's own")
    leave_iterations(numItermax, stopThr)
    leave_if(any(map(is_differentiated, (A, M, weights))), "gradients were asked")
    is_symmetric = costs.shape[0] == costs.shape[1] and bool((costs == costs.T).all())
    leave_if(not is_symmetric, "the costs are not symmetric")
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


@replaces("lp.free_support_barycenter")
def free_support_barycenter(
    measures_locations: Any,
    measures_weights: Any,
    X_init: Any,
    b: Any = None,
    weights: Any = None,
    numItermax: int = 100,
    stopThr: float = 1e-7,
    verbose: bool = False,
    log: Any = None,
    numThreads: Any = 1,
) -> Any:
    """Return points of a free-support barycentre, as :func:`ot.lp.free_support_barycenter` does.

    Exact plans and moves of the points alternate until the cost no longer falls: a local optimum.
    ``log=True`` also returns ``cost``, ``lower_bound`` and ``gap`` of transport to these points,
    and ``costs``, one before every move.
    """
    given = (*measures_locations, *measures_weights, X_init, b, weights)
    leave_if(any(map(is_differentiated, given)), "gradients are those of POT's own operations")
    nx = get_backend(*measures_locations, *measures_weights, X_init)
    init = np.asarray(nx.to_numpy(X_init), np.float64)
    end, shares = (
        None if x is None else np.asarray(nx.to_numpy(x), np.float64) for x in (b, weights)
    )
    masses = [np.asarray(nx.to_numpy(x), np.float64) for x in measures_weights]
    totals = [float(w.sum()) for w in (*masses, end, shares) if w is not None]
    leave_if(not np.allclose(totals, 1.0), "weights do not sum to 1")
    clouds = [np.asarray(nx.to_numpy(x), np.float64) for x in measures_locations]
    keywords: dict[str, Any] = {"masses": masses, "weights": shares, "b": end, "init": init}
    with leaving_refusals():
        found = barycenter_sample(
            clouds, len(init), rtol=TUNING.rtol, decrease=0.0, max_iter=numItermax, **keywords
        )
    points = nx.from_numpy(found.points, type_as=X_init)
    if not log:
        return points
    entries = {"cost": found.value, "costs": found.history}
    return points, entries | {"lower_bound": found.lower_bound, "gap": found.gap}
