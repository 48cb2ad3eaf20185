"""Replace ``ot.solve``."""

from __future__ import annotations

from typing import Any

import numpy as np
from ot.utils import OTResult

from .._types import Vector
from ..kernels.vectors import log
from ._arrays import Arguments, has_gradients, is_differentiated, leave_iterations, read
from ._entropic import entropic_plan, warn_unless_converged
from ._linear import emd2
from ._modules import leave_if, leaving_refusals, replaces
from ._tuning import TUNING


@replaces("solvers.solve")
def solve(
    M: Any,
    a: Any = None,
    b: Any = None,
    reg: Any = None,
    c: Any = None,
    reg_type: Any = "KL",
    unbalanced: Any = None,
    unbalanced_type: str = "KL",
    method: Any = None,
    n_threads: Any = 1,
    max_iter: Any = None,
    plan_init: Any = None,
    potentials_init: Any = None,
    tol: Any = None,
    verbose: bool = False,
    grad: str = "autodiff",
) -> Any:
    """Solve a transport problem, as :func:`ot.solve` does.

    ``log`` of the result holds ``lower_bound`` and ``gap`` of balanced problems without ``reg``, or
    with an entropy. Unbalanced problems call our functions inside; other regularisers are POT's.

    Examples
    --------
    >>> import epsilot.pot as ot, numpy as np
    >>> result = ot.solve(np.array([[0.0, 1.0], [1.0, 0.0]]), reg=1.0)
    >>> result.value_linear.round(6), sorted(result.log)
    (np.float64(0.268941), ['gap', 'lower_bound'])
    """
    is_named = method is None or method in {"sinkhorn", "sinkhorn_log", "mm", "lbfgsb"}
    leave_if(unbalanced is not None or not is_named, "another function solves it")
    leave_if(is_differentiated(reg), "gradients are those of POT's own operations")
    if reg is None or float(reg) == 0:
        limit = TUNING.max_pivots if max_iter is None else max_iter
        return _linear(M, a, b, limit, n_threads, potentials_init)
    is_entropy = isinstance(reg_type, str) and reg_type.lower() in {"entropy", "kl"}
    leave_if(not is_entropy, f"reg_type={reg_type!r} is POT's own")
    limits = (1000 if max_iter is None else max_iter), (1e-9 if tol is None else tol)
    leave_iterations(*limits)
    given = read(a, b, M, check_marginals=False, like_cost=True)
    is_one = given.b.ndim == 1 and not given.is_sparse and not _is_traced(given)
    leave_if(not is_one, "b has columns, the costs are sparse, or JAX traces the call")
    is_envelope = grad in {"envelope", "detach"} or not has_gradients(given)
    leave_if(not is_envelope, "gradients are those of POT's own operations")
    with leaving_refusals():
        return _entropic(given, float(reg), reg_type.lower(), grad, limits)


def _is_traced(given: Arguments) -> bool:
    """Tell whether JAX traces the call, so that arrays have no values."""
    return given.nx.__name__ == "jax" and has_gradients(given)


def _linear(M: Any, a: Any, b: Any, limit: Any, n_threads: Any, start: Any) -> Any:
    """Solve a balanced problem without regularisation."""
    options = {"return_matrix": True, "numThreads": n_threads, "potentials_init": start}
    value, log = emd2(a, b, M, numItermax=limit, log=True, **options)
    return OTResult(
        potentials=(log["u"], log["v"]),
        value=value,
        value_linear=value,
        plan=log["G"],
        status="Converged" if log["warning"] is None else log["warning"],
        log={name: log[name] for name in ("lower_bound", "gap") if name in log},
        backend=read(a, b, M, check_marginals=False).nx,
    )


def _entropic(
    given: Arguments, reg: float, reg_type: str, grad: str, limits: tuple[float, float]
) -> Any:
    """Solve a balanced entropic problem; the gradient of its minimum is the plan."""
    M, nx = given.M, given.nx
    max_iter, error = limits
    found = entropic_plan(M, given.a, given.b, reg, max_iter=max_iter, error=error)
    warn_unless_converged(found, warn=True)
    constant = kl_constant(given.a, given.b, reg) if reg_type == "kl" else 0.0
    value = given.number(found.value + constant)
    plan = given.back(found.plan)
    if grad == "envelope" and has_gradients(given):
        f, g = (np.where(np.isfinite(x), x, 0.0) for x in (found.f, found.g))
        slopes = plan, given.back(f - f.mean()), given.back(g - g.mean())
        a, b, cost = given.given
        value = nx.set_gradients(value, (cost, a, b), slopes)
    return OTResult(
        potentials=(given.back(found.f / reg), given.back(found.g / reg)),
        value=value,
        value_linear=given.number(found.price(M)),
        plan=plan,
        log={"lower_bound": found.lower + constant, "gap": found.value - found.lower},
        backend=nx,
    )


def kl_constant(a: Vector, b: Vector, reg: float) -> float:
    """Return the difference of both objectives: KL(X | a bᵀ) = -H(X) - <a, log a> - <b, log b>."""
    parts = (w[w > 0] for w in (a, b))
    logs = sum(float(np.vdot(w / w.sum(), log(np.ascontiguousarray(w)))) for w in parts)
    return -reg * float(a.sum()) * logs
