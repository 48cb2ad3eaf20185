"""Replace POT's Sinkhorn functions by certified solutions of the same entropic problems."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from .._types import Array, Matrix, Potentials, Vector
from ..api.solve import solve
from ..engine.scaled_entropic import solve_by_scaling
from ..frameworks.entropic_starts import newton_potentials
from ..frameworks.losses import TUNING as LOSS_TUNING
from ..geometry import Dense, Geometry, as_geometry
from ._arrays import Arguments, leave_non_entropic, read
from ._modules import leave_if, leaving_refusals, replaces
from ._tuning import TUNING

#: POT's names of algorithms; the certified solution is that of all of them.
METHODS = {
    "sinkhorn",
    "sinkhorn_log",
    "greenkhorn",
    "sinkhorn_stabilized",
    "sinkhorn_epsilon_scaling",
}
#: Those that POT's ``sinkhorn2`` knows.
COST_METHODS = {"sinkhorn", "sinkhorn_log", "sinkhorn_stabilized"}


class EntropicPlan(NamedTuple):
    """The solution of min <M, X> - reg H(X), in NumPy."""

    plan: Matrix
    f: Vector
    g: Vector
    value: float
    lower: float
    marginal_error: float
    n_iter: int
    is_converged: bool

    @property
    def bounds(self) -> dict[str, float]:
        """The entries of a log that POT does not have."""
        return {"lower_bound": self.lower, "gap": self.value - self.lower}

    def price(self, M: Matrix) -> float:
        """Return <M, X>; forbidden pairs, whose cost is inf, carry nothing."""
        is_finite = np.isfinite(M.max(initial=0.0))
        return float(np.vdot(self.plan, M if is_finite else np.where(self.plan > 0, M, 0.0)))


def tolerance(M: Geometry, reg: float, mass: float) -> float:
    """Return the entropic gap to reach."""
    return TUNING.tol_share * max(*map(abs, M.bounds), reg) * mass


def entropic_plan(
    M: Matrix,
    a: Vector,
    b: Vector,
    reg: float,
    *,
    start: Potentials | None = None,
    max_iter: float = 1000,
    error: float = np.inf,
) -> EntropicPlan:
    """Solve one balanced entropic problem; the means of both potentials are equal.

    Where Sinkhorn's method is fast, it goes on until the marginals err by at most ``error``. Else
    Newton's method makes the start, and Sinkhorn's at most ``max_iter`` epochs.
    """
    error = min(error, TUNING.marginal_error)
    geometry = as_geometry(M)
    tol = tolerance(geometry, reg, float(a.sum()))
    if start is None:
        easy = solve_by_scaling(geometry, a, b, reg, gap=tol, error=error, max_sweeps=max_iter)
        if easy is not None:
            plan, potentials, value, lower, missed, n_iter = easy
            f, g = _balanced(*potentials, a, b)
            return EntropicPlan(plan, f, g, value, lower, missed, n_iter, is_converged=True)
    is_dense = isinstance(geometry, Dense)
    if start is None and is_dense and max(M.shape) <= LOSS_TUNING.max_newton_start_rows:
        start = newton_potentials(geometry, a, b, reg, tol)
    limits: dict[str, Any] = {"max_iter": int(max_iter), "on_limit": "ignore"}
    result = solve(geometry, a, b, reg=reg, tol=tol, potentials_init=start, **limits)
    f, g = _balanced(*result.potentials, a, b)
    return EntropicPlan(
        plan=result.plan,
        f=f,
        g=g,
        value=result.value,
        lower=result.lower_bound,
        marginal_error=result.marginal_error,
        n_iter=result.n_iter,
        is_converged=result.converged,
    )


def _balanced(f: Vector, g: Vector, a: Vector, b: Vector) -> Potentials:
    """Return potentials with equal means over the points that have mass."""
    shift = (np.mean(g[b > 0]) - np.mean(f[a > 0])) / 2
    return f + shift, g - shift


def warn_unless_converged(found: EntropicPlan, warn: bool) -> None:
    """Warn as POT does."""
    if warn and not found.is_converged:
        warnings.warn(
            f"Sinkhorn did not converge: the entropic gap is {found.value - found.lower:.3g} "
            "(use a larger reg).",
            stacklevel=4,
        )


def scalings(given: Arguments, f: Array, g: Array, reg: float) -> dict[str, Any]:
    """Return the potentials by the names that POT's algorithms give them in their logs."""
    logs = given.back(f / reg), given.back(g / reg)
    with np.errstate(over="ignore"):
        u, v = given.back(np.exp(f / reg)), given.back(np.exp(g / reg))
    names = {"u": u, "v": v, "alpha": given.back(f), "beta": given.back(g), "warmstart": logs}
    return names | {"log_u": logs[0], "log_v": logs[1], "logu": logs[0], "logv": logs[1]}


class SinkhornLimits(NamedTuple):
    """What ends the iterations of POT, and where they start."""

    max_iter: float
    tolerance: float
    warmstart: Any = None  # logarithms of scalings


def _solved(
    given: Arguments, reg: Any, method: Any, limits: SinkhornLimits, *, methods: set[str]
) -> list[EntropicPlan]:
    """Solve one problem for each column of b, or leave the call to POT."""
    is_known = isinstance(method, str) and method.lower() in methods
    leave_if(not is_known, f"method={method!r} is POT's own")
    leave_non_entropic(given, reg, limits.max_iter, limits.tolerance)
    M, start = given.M, None
    if limits.warmstart is not None and given.b.ndim == 1:
        f, g = (float(reg) * np.asarray(given.nx.to_numpy(x)) for x in limits.warmstart)
        start = f, g
    keywords: dict[str, Any] = {"start": start, "max_iter": limits.max_iter}
    columns = np.ascontiguousarray(np.atleast_2d(given.b.T))
    with leaving_refusals():
        return [
            entropic_plan(M, given.a, b, float(reg), error=limits.tolerance, **keywords)
            for b in columns
        ]


@replaces("bregman.sinkhorn")
def sinkhorn(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    method: str = "sinkhorn",
    numItermax: int = 1000,
    stopThr: float = 1e-9,
    verbose: bool = False,
    log: bool = False,
    warn: bool = True,
    warmstart: Any = None,
    **kwargs: Any,
) -> Any:
    """Return the entropic plan, as :func:`ot.sinkhorn` does; costs for b of shape (m, k).

    All values of ``method`` give the same certified plan. ``log=True`` also returns ``err``,
    ``niter``, the scalings ``u, v``, their logarithms, ``lower_bound`` and ``gap``, which are those
    of min <M, X> - reg H(X). Fewer than 10 iterations, and ``stopThr=0``, are POT's own.

    Examples
    --------
    >>> import epsilot.pot as ot
    >>> ot.sinkhorn([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], reg=1).round(4)
    array([[0.3655, 0.1345],
           [0.1345, 0.3655]])
    """
    given = read(a, b, M, check_marginals=False, like_cost=True)
    limits = SinkhornLimits(numItermax, stopThr, warmstart)
    found = _solved(given, reg, method, limits, methods=METHODS)
    for one in found:
        warn_unless_converged(one, warn)
    if given.b.ndim > 1:
        return _stacked(given, found, float(reg), log)
    plan = given.back(found[0].plan)
    return (plan, _log(given, found[0], float(reg))) if log else plan


@replaces("bregman.sinkhorn2")
def sinkhorn2(
    a: Any,
    b: Any,
    M: Any,
    reg: float,
    method: str = "sinkhorn",
    numItermax: int = 1000,
    stopThr: float = 1e-9,
    verbose: bool = False,
    log: bool = False,
    warn: bool = False,
    warmstart: Any = None,
    **kwargs: Any,
) -> Any:
    """Return the cost <M, X> of the entropic plan, as :func:`ot.sinkhorn2` does.

    Gradients are those of POT, through its iterations: <M, X> is not the minimum, whose gradient
    would be the plan (``ot.solve(..., reg=reg, grad="envelope").value`` is).
    """
    given = read(a, b, M, check_marginals=False, like_cost=True)
    limits = SinkhornLimits(numItermax, stopThr, warmstart)
    found = _solved(given, reg, method, limits, methods=COST_METHODS)
    for one in found:
        warn_unless_converged(one, warn)
    if given.b.ndim > 1:
        return _stacked(given, found, float(reg), log)
    cost = given.number(found[0].price(given.M))
    return (cost, _log(given, found[0], float(reg))) if log else cost


def _log(given: Arguments, found: EntropicPlan, reg: float) -> dict[str, Any]:
    """Return POT's dictionary of a solution, with our bounds."""
    return {
        "err": [found.marginal_error],
        "niter": found.n_iter,
        **scalings(given, found.f, found.g, reg),
        **found.bounds,
    }


def _stacked(given: Arguments, found: list[EntropicPlan], reg: float, log: bool) -> Any:
    """Return the costs of one problem for each column of b."""
    costs = given.back(np.array([one.price(given.M) for one in found]))
    if not log:
        return costs
    f, g = (np.column_stack([getattr(one, name) for one in found]) for name in ("f", "g"))
    entries: dict[str, Any] = {"err": [max(one.marginal_error for one in found)]}
    entries |= {"niter": max(one.n_iter for one in found), **scalings(given, f, g, reg)}
    for name in ("lower_bound", "gap"):
        entries[name] = np.array([one.bounds[name] for one in found])
    return costs, entries
