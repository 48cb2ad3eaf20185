"""Replace POT's functions for partial transport of a given mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..api.solve import solve
from ._arrays import has_gradients, read
from ._modules import original, replaces
from ._tuning import TUNING


@replaces("partial.partial_wasserstein")
def partial_wasserstein(
    a: Any, b: Any, M: Any, m: Any = None, nb_dummies: int = 1, log: bool = False, **kwargs: Any
) -> Any:
    """Return the optimal plan that moves the mass m, as POT's function of this name does.

    ``log=True`` also returns ``partial_w_dist, cost, u, v, warning, result_code, lower_bound,
    gap``. ``nb_dummies`` is accepted; no dummy points are added. ``m=None`` is POT's own.
    """
    given = read(a, b, M, check_marginals=False, like_cost=True, rescale=False)
    totals = float(given.a.sum()), float(given.b.sum())
    is_possible = m is not None and 0 < m <= min(totals) and given.b.ndim == 1
    if not is_possible or given.is_sparse or has_gradients(given):
        return original(partial_wasserstein)(a, b, M, m, nb_dummies, log, **kwargs)
    found = solve(
        given.M, given.a, given.b, mass=float(m), rtol=TUNING.rtol, method="auto", on_limit="ignore"
    )
    plan = given.back(found.plan)
    if not log:
        return plan
    u, v = found.potentials
    return plan, {
        "partial_w_dist": given.back(np.float64(found.value)),
        "cost": given.back(np.float64(found.value)),
        "u": given.back(u),
        "v": given.back(v),
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
