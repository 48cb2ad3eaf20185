"""Replace POT's functions for unbalanced transport with Kullback-Leibler or l1 penalties."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from ot.utils import get_parameter_pair
from scipy.optimize import OptimizeResult
from scipy.special import logsumexp

from .._types import Matrix, Vector
from ..api.solve import run_request
from ..engine.request import Request
from ..kernels.vectors import log as logarithm
from ._arrays import (
    Arguments,
    is_differentiated,
    leave_gradients,
    leave_iterations,
    leave_non_entropic,
    read,
)
from ._modules import leave_if, leaving_refusals, replaces
from ._tuning import TUNING

#: Relative gap of problems without regularisation, and the work after which it is not improved.
RTOL, MAX_EPOCHS = 1e-9, 20_000
#: Updates of POT's scalings after the solution, which has about half of their digits.
MAX_POLISHING_UPDATES, POLISHING_CHANGE = 200, 1e-12
#: POT's names of algorithms for entropic unbalanced transport.
SINKHORN_METHODS = {"sinkhorn", "sinkhorn_stabilized", "sinkhorn_translation_invariant"}


class UnbalancedPlan(NamedTuple):
    """The solution of an unbalanced problem, in NumPy; value and bound are of POT's objective."""

    plan: Matrix
    value: float
    lower: float
    is_converged: bool

    @property
    def bounds(self) -> dict[str, float]:
        """The entries of a log that POT does not have."""
        return {"lower_bound": self.lower, "gap": self.value - self.lower}


def prices_of(given: Arguments, reg_m: Any) -> tuple[float, float] | None:
    """Return both penalties, or None if they are not positive numbers without gradients."""
    try:
        pair = [float(x) for x in get_parameter_pair(reg_m)]
    except (TypeError, ValueError):
        return None
    is_plain = not any(map(is_differentiated, get_parameter_pair(reg_m)))
    return (pair[0], pair[1]) if is_plain and min(pair) > 0 else None


def checked_prices(given: Arguments, reg_m: Any, c: Any) -> tuple[float, float]:
    """Return both penalties, or leave what we do not solve to POT."""
    prices = prices_of(given, reg_m)
    leave_if(prices is None, "the penalties are not positive numbers without gradients")
    leave_gradients(given, c)
    leave_if(given.b.ndim != 1 or given.is_sparse, "b has columns, or the costs are sparse")
    is_positive = (given.a > 0).all() and (given.b > 0).all()
    if c is not None:
        is_positive = is_positive and (np.asarray(given.nx.to_numpy(c)) > 0).all()
    leave_if(not is_positive, "a weight is 0")
    assert prices is not None
    return prices


def unbalanced_plan(
    given: Arguments,
    prices: tuple[float, float],
    *,
    reg: float = 0.0,
    reference: Matrix | None = None,
    divergence: str = "kl",
) -> UnbalancedPlan:
    r"""Solve an unbalanced problem.

    .. math:: \min_X \langle M, X\rangle + \mathrm{reg} \sum (X \log(X / R) - X + R)
        + \lambda_a D(X 1 | a) + \lambda_b D(X^\top 1 | b)

    With a reference R, this is the problem with the costs M - reg (1 + log R) and the plain entropy
    but for the constant reg Σ R. Without one, the term is reg Σ X (log X - 1).
    """
    M, constant = given.M, 0.0
    keywords: dict[str, Any] = {"unbalanced": prices, "unbalanced_type": divergence}
    if all(map(math.isinf, prices)):
        keywords = {}
    if reg > 0:
        M = M - reg
        if reference is not None:
            M -= reg * logarithm(np.ascontiguousarray(reference))
            constant = reg * float(reference.sum())
        size = max(float(np.abs(M).max()), *(x for x in (*prices, reg) if x < np.inf))
        keywords["reg"] = reg
        keywords["tol"] = TUNING.tol_share * size * max(float(given.a.sum()), float(given.b.sum()))
    else:
        keywords |= {"rtol": RTOL, "max_iter": MAX_EPOCHS}
    request = Request.of(keywords | {"on_limit": "ignore"})
    result = run_request(request, np.ascontiguousarray(M), given.a, given.b)
    value, lower = result.value + constant, result.lower_bound + constant
    return UnbalancedPlan(result.plan, value, lower, result.converged)


def reference_of(given: Arguments, reg_type: str, c: Any) -> Matrix | None:
    """Return the reference of the regulariser: c, or the product of the weights, or none."""
    if reg_type.lower() == "entropy":
        return None
    if c is not None:
        return np.asarray(given.nx.to_numpy(c), np.float64)
    return np.outer(given.a, given.b)


def log_scalings(
    given: Arguments,
    found: UnbalancedPlan,
    reg: float,
    prices: tuple[float, float],
    reference: Matrix | None,
) -> tuple[Vector, Vector]:
    """Return the logarithms of POT's scalings: a fixed point of its updates, from our plan."""
    kernel = -given.M / reg
    if reference is not None:
        kernel += logarithm(np.ascontiguousarray(reference))
    log_a, log_b = (logarithm(np.ascontiguousarray(w)) for w in (given.a, given.b))
    shares = [price / (price + reg) if price < np.inf else 1.0 for price in prices]
    ratio = np.ascontiguousarray(found.plan.sum(axis=0) / given.b)
    v = -prices[1] / reg * logarithm(ratio) if prices[1] < np.inf else np.zeros(ratio.size)
    v[ratio == 0] = 0.0  # of columns whose mass underflows
    u = np.zeros(log_a.size)
    for _ in range(MAX_POLISHING_UPDATES):
        before = v
        u = shares[0] * (log_a - logsumexp(kernel + v, axis=1))
        v = shares[1] * (log_b - logsumexp(kernel + u[:, None], axis=0))
        if np.abs(v - before).max() <= POLISHING_CHANGE:
            break
    return u, v


def _sinkhorn(
    a: Any, b: Any, M: Any, reg: Any, reg_m: Any, reg_type: Any, c: Any, limits: tuple[Any, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return plan and log of entropic unbalanced transport, or leave the call to POT."""
    given = _read(a, b, M)
    prices = checked_prices(given, reg_m, c)
    leave_non_entropic(given, reg, *limits)
    leave_if(not _is_known(reg_type), f"reg_type={reg_type!r} is POT's own")
    reference = reference_of(given, reg_type, c)
    with leaving_refusals():
        found = unbalanced_plan(given, prices, reg=float(reg), reference=reference)
    u, v = (given.back(x) for x in log_scalings(given, found, float(reg), prices, reference))
    return given.back(found.plan), {"err": [0.0], "logu": u, "logv": v, **_costs(given, found)}


def _is_known(reg_type: Any) -> bool:
    """Tell whether a regulariser is an entropy."""
    return isinstance(reg_type, str) and reg_type.lower() in {"kl", "entropy"}


def _check_method(method: Any) -> None:
    """Leave algorithms that solve other problems to POT."""
    leave_if(method not in SINKHORN_METHODS, f"method={method!r} is POT's own")


@replaces("unbalanced.sinkhorn_unbalanced")
def sinkhorn_unbalanced(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    reg_m: Any,
    method: str = "sinkhorn",
    reg_type: str = "kl",
    c: Any = None,
    warmstart: Any = None,
    numItermax: int = 1000,
    stopThr: float = 1e-6,
    verbose: bool = False,
    log: bool = False,
    **kwargs: Any,
) -> Any:
    """Return the plan of entropic unbalanced transport, as POT's function of this name does.

    All values of ``method`` give the same certified plan. ``log=True`` also returns ``err``,
    ``cost``, ``total_cost``, ``logu``, ``logv``, ``lower_bound`` and ``gap``. ``total_cost`` is the
    minimum that the bounds are of.
    """
    _check_method(method)
    found = _sinkhorn(a, b, M, reg, reg_m, reg_type, c, (numItermax, stopThr))
    return found if log else found[0]


@replaces("unbalanced.sinkhorn_knopp_unbalanced")
def sinkhorn_knopp_unbalanced(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    reg_m: Any,
    reg_type: str = "kl",
    c: Any = None,
    warmstart: Any = None,
    numItermax: int = 1000,
    stopThr: float = 1e-6,
    verbose: bool = False,
    log: bool = False,
    **kwargs: Any,
) -> Any:
    """Return the plan of entropic unbalanced transport, as ``sinkhorn_unbalanced`` does.

    ``ot.solve`` calls it.
    """
    found = _sinkhorn(a, b, M, reg, reg_m, reg_type, c, (numItermax, stopThr))
    return found if log else found[0]


def _read(a: Any, b: Any, M: Any) -> Arguments:
    """Return the arguments, with the totals that the caller gave."""
    return read(a, b, M, check_marginals=False, like_cost=True, rescale=False)


def _costs(given: Arguments, found: UnbalancedPlan) -> dict[str, Any]:
    """Return the entries of a log that hold costs."""
    linear = given.number(float(np.vdot(found.plan, given.M)))
    return {"cost": linear, "total_cost": given.number(found.value), **found.bounds}


@replaces("unbalanced.sinkhorn_unbalanced2")
def sinkhorn_unbalanced2(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    reg_m: Any,
    method: str = "sinkhorn",
    reg_type: str = "kl",
    c: Any = None,
    warmstart: Any = None,
    returnCost: str = "linear",
    numItermax: int = 1000,
    stopThr: float = 1e-6,
    verbose: bool = False,
    log: bool = False,
    **kwargs: Any,
) -> Any:
    """Return the cost of entropic unbalanced transport, as POT's function of this name does."""
    _check_method(method)
    leave_if(returnCost not in {"linear", "total"}, f"returnCost={returnCost!r} is POT's own")
    found = _sinkhorn(a, b, M, reg, reg_m, reg_type, c, (numItermax, stopThr))
    cost = found[1]["cost" if returnCost == "linear" else "total_cost"]
    return (cost, found[1]) if log else cost


def _penalised(
    a: Any, b: Any, M: Any, reg: Any, reg_m: Any, c: Any, reg_div: Any, divergence: str,
    limits: tuple[Any, Any],
) -> UnbalancedPlan:  # fmt: skip
    """Solve an unbalanced problem with or without an entropy, or leave the call to POT."""
    given = _read(a, b, M)
    prices = checked_prices(given, reg_m, c)
    leave_gradients(given, reg)
    leave_iterations(*limits)
    is_entropic = float(reg) > 0
    leave_if(is_entropic and not _is_known(reg_div), f"reg_div={reg_div!r} is POT's own")
    reference = reference_of(given, reg_div, c) if is_entropic else None
    with leaving_refusals():
        return unbalanced_plan(
            given, prices, reg=float(reg), reference=reference, divergence=divergence
        )


@replaces("unbalanced.mm_unbalanced")
def mm_unbalanced(
    a: Any,
    b: Any,
    M: Any,
    reg_m: Any,
    c: Any = None,
    reg: float = 0,
    div: str = "kl",
    G0: Any = None,
    numItermax: int = 1000,
    stopThr: float = 1e-15,
    verbose: bool = False,
    log: bool = False,
) -> Any:
    """Return the plan of unbalanced transport with KL penalties, as POT's function does.

    POT's algorithm ends after ``numItermax`` steps, far from the optimum in many problems; ours has
    no such limit. ``div="l2"`` is POT's own.
    """
    leave_if(div.lower() != "kl", f"div={div!r} is POT's own")
    found = _penalised(a, b, M, reg, reg_m, c, "kl", "kl", (numItermax, stopThr))
    given = _read(a, b, M)
    plan = given.back(found.plan)
    return (plan, {"err": [0.0], "G": [plan], **_costs(given, found)}) if log else plan


@replaces("unbalanced.lbfgsb_unbalanced")
def lbfgsb_unbalanced(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    reg_m: Any,
    c: Any = None,
    reg_div: Any = "kl",
    regm_div: str = "kl",
    G0: Any = None,
    numItermax: int = 1000,
    stopThr: float = 1e-15,
    method: str = "L-BFGS-B",
    verbose: bool = False,
    log: bool = False,
) -> Any:
    """Return the plan of unbalanced transport, as POT's function of this name does.

    Ours are KL penalties with ``reg_div`` "kl" or "entropy", or without ``reg``, and "tv" penalties
    without ``reg``. All others are POT's own.
    """
    is_solved = regm_div.lower() == "kl" or (regm_div.lower() == "tv" and float(reg) == 0)
    leave_if(not is_solved, f"regm_div={regm_div!r} is POT's own")
    limits = numItermax, stopThr
    found = _penalised(a, b, M, reg, reg_m, c, reg_div, regm_div.lower(), limits)
    given = _read(a, b, M)
    plan = given.back(found.plan)
    if not log:
        return plan
    res = OptimizeResult(x=found.plan.ravel(), fun=found.value, success=found.is_converged)
    return plan, {"res": res, **_costs(given, found)}
