"""Replace POT's functions for partial transport of a given mass."""

from __future__ import annotations

import warnings
from typing import Any

from ..api.solve import solve
from ..engine.result import Result
from ..geometry import as_geometry
from ._arrays import Arguments, leave_gradients, leave_non_entropic, read
from ._entropic import tolerance
from ._modules import leave_if, leaving_refusals, replaces
from ._tuning import TUNING

#: POT's names of algorithms for entropic partial transport.
ENTROPIC_METHODS = {"sinkhorn", "sinkhorn_log"}


def _leave_impossible(given: Arguments, m: Any) -> None:
    """Leave masses that cannot be moved to POT, and several b."""
    is_possible = m is not None and 0 < m <= min(float(given.a.sum()), float(given.b.sum()))
    leave_if(not is_possible or given.b.ndim != 1, "m is not a mass that can be moved")


def _solved(given: Arguments, m: Any) -> Result:
    """Solve for the mass m, or leave the call to POT."""
    _leave_impossible(given, m)
    leave_if(given.is_sparse, "the costs are sparse")
    leave_gradients(given)
    wanted: dict[str, Any] = {"rtol": TUNING.rtol, "mass": float(m), "on_limit": "ignore"}
    with leaving_refusals():
        return solve(given.M, given.a, given.b, **wanted)


@replaces("partial.partial_wasserstein")
def partial_wasserstein(
    a: Any, b: Any, M: Any, m: Any = None, nb_dummies: int = 1, log: bool = False, **kwargs: Any
) -> Any:
    """Return the optimal plan that moves the mass m, as POT's function of this name does.

    ``log=True`` also returns ``partial_w_dist, cost, u, v, warning, result_code, lower_bound,
    gap``. ``nb_dummies`` is accepted; no dummy points are added. ``m=None`` is POT's own.
    """
    given = read(a, b, M, check_marginals=False, like_cost=True, rescale=False)
    found = _solved(given, m)
    plan = given.back(found.plan)
    if not log:
        return plan
    u, v = map(given.back, found.potentials)
    return plan, {
        "partial_w_dist": given.number(found.value),
        "cost": found.value,
        "u": u,
        "v": v,
        "warning": None if found.converged else str(found.status),
        "result_code": 1 if found.converged else 3,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
    }


@replaces("partial.partial_wasserstein2")
def partial_wasserstein2(
    a: Any, b: Any, M: Any, m: Any = None, nb_dummies: int = 1, log: bool = False, **kwargs: Any
) -> Any:
    """Return the optimal cost of moving the mass m, as POT's function of this name does."""
    plan, entries = partial_wasserstein(a, b, M, m, nb_dummies, log=True, **kwargs)
    entries["T"] = plan
    given = read(a, b, M, check_marginals=False, rescale=False)
    cost = given.nx.sum(plan * given.given[2])
    return (cost, entries) if log else cost


@replaces("partial.entropic_partial_wasserstein")
def entropic_partial_wasserstein(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    m: Any = None,
    method: str = "sinkhorn",
    numItermax: int = 1000,
    stopThr: float = 1e-100,
    verbose: bool = False,
    log: bool = False,
) -> Any:
    """Return the entropic plan that moves the mass m, as POT's function of this name does.

    Both values of ``method`` give the same plan. It ends at an entropic gap of 1e-12 of the largest
    cost, or after ``numItermax`` epochs with a warning and a larger gap. ``log=True`` also returns
    ``err``, ``partial_w_dist``, ``lower_bound`` and ``gap``; the bounds are of <M, X> - reg H(X).

    Examples
    --------
    >>> import epsilot.pot as ot
    >>> M = [[0.0, 1.0], [2.0, 3.0]]
    >>> ot.partial.entropic_partial_wasserstein([0.1, 0.2], [0.1, 0.1], M, 1, 0.1).round(2)
    array([[0.06, 0.02],
           [0.01, 0.  ]])
    """
    leave_if(method.lower() not in ENTROPIC_METHODS, f"method={method!r} is POT's own")
    given = read(a, b, M, check_marginals=False, like_cost=True, rescale=False)
    mass = min(float(given.a.sum()), float(given.b.sum())) if m is None else m
    leave_non_entropic(given, reg, numItermax, stopThr, mass)
    _leave_impossible(given, mass)
    limits: dict[str, Any] = {"max_iter": int(numItermax), "on_limit": "ignore"}
    with leaving_refusals():
        geometry = as_geometry(given.M)
        tol = tolerance(geometry, float(reg), float(mass))
        keywords = {"mass": float(mass), "reg": float(reg), "tol": tol, **limits}
        found = solve(geometry, given.a, given.b, **keywords)
    if not found.converged:
        warnings.warn(
            f"entropic_partial_wasserstein did not converge: the entropic gap is {found.gap:.3g} "
            "(use a larger reg or numItermax).",
            stacklevel=3,
        )
    plan = given.back(found.plan)
    if not log:
        return plan
    entries = {"lower_bound": found.lower_bound, "gap": found.gap}
    cost = given.number(found.value_linear)
    return plan, {"err": [found.marginal_error], "partial_w_dist": cost, **entries}


@replaces("partial.entropic_partial_wasserstein_logscale")
def entropic_partial_wasserstein_logscale(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    m: Any = None,
    numItermax: int = 1000,
    stopThr: float = 1e-100,
    verbose: bool = False,
    log: bool = False,
) -> Any:
    """Return the plan of ``entropic_partial_wasserstein``."""
    options: dict[str, Any] = {"numItermax": numItermax, "stopThr": stopThr, "log": log}
    return entropic_partial_wasserstein(a, b, M, reg, m, **options)
