"""Replace POT's functions for partial transport of a given mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..api.solve import solve
from ..engine.result import Result
from ._arrays import Arguments, leave_gradients, read
from ._modules import leave_if, leaving_refusals, replaces
from ._tuning import TUNING


def _solved(given: Arguments, m: Any) -> Result:
    """Solve for the mass m, or leave the call to POT."""
    totals = float(given.a.sum()), float(given.b.sum())
    is_possible = m is not None and 0 < m <= min(totals) and given.b.ndim == 1
    leave_if(not is_possible, "m is not a mass that can be moved")
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
    cost = given.back(np.float64(found.value))
    return plan, {
        "partial_w_dist": cost,
        "cost": cost,
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
