"""Replace POT's functions that solve many problems of one shape."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from ot.backend import get_backend
from ot.utils import OTResult

from .._types import Matrix
from ..api.batch import solve_batch as solve_many
from ..errors import ConvergenceWarning
from ._arrays import is_differentiated, leave_iterations
from ._entropic import EntropicPlan, entropic_plan
from ._modules import leave_if, leaving_refusals, replaces
from ._solvers import kl_constant
from ._tuning import TUNING

#: POT's names of algorithms; the certified answers are those of all of them.
METHODS = {"auto", "proximal", "log_sinkhorn", "sinkhorn"}
#: Whose gradients are those of the minima, or none.
GRADS = {"envelope", "detach"}
#: Whose gradients are those of POT's iterations.
ITERATION_GRADS = {"autodiff", "last_step"}


@replaces("batch.solve_batch")
def solve_batch(
    M: Any,
    reg: Any = None,
    a: Any = None,
    b: Any = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    method: str = "auto",
    inner_iter: int = 1,
    inner_reg: float = 1e-3,
    reg_type: str = "entropy",
    grad: str = "envelope",
) -> Any:
    """Solve problems of one shape, as :func:`ot.batch.solve_batch` does.

    All values of ``method`` give the same certified answers: exact ones without ``reg``. ``log`` of
    the result holds ``lower_bound`` and ``gap``, one for each problem. Gradients through the
    iterations (``grad`` "autodiff" or "last_step") are POT's.

    Examples
    --------
    >>> import epsilot.pot as ot, numpy as np
    >>> M = np.random.default_rng(0).random((3, 5, 6))
    >>> result = ot.batch.solve_batch(M)
    >>> result.value.round(6), result.log["lower_bound"].round(6)
    (array([0.204639, 0.19115 , 0.3241  ]), array([0.204639, 0.19115 , 0.3241  ]))
    """
    is_graded = any(map(is_differentiated, (M, a, b)))
    is_ours = grad in GRADS if is_graded else grad in GRADS | ITERATION_GRADS
    is_known = is_ours and method in METHODS and reg_type in {"kl", "entropy"}
    leave_if(not is_known, "the gradients, the method or the regulariser are POT's own")
    share = 0.0 if reg is None else float(reg)
    leave_if(share <= 0 and "sinkhorn" in method, "POT reports a missing reg")
    leave_if(is_differentiated(reg), "gradients are those of POT's own operations")
    leave_iterations(max_iter, tol)
    nx = get_backend(a, b, M)
    costs = np.ascontiguousarray(nx.to_numpy(nx.detach(M)), np.float64)
    weights = [None if w is None else np.asarray(nx.to_numpy(w), np.float64) for w in (a, b)]
    with leaving_refusals():
        found = _solved(costs, weights, share, max_iter)
    constant = np.zeros(len(found))
    if share > 0 and reg_type == "kl":
        constant += [kl_constant(*w, share) for w in _weights(costs, weights)]
    plan, value = (np.stack([getattr(x, name) for x in found]) for name in ("plan", "value"))
    f, g = (np.stack([getattr(x, name) for x in found]) / (share or 1.0) for name in ("f", "g"))
    lower = np.array([x.lower for x in found])
    linear = np.array([x.price(C) for x, C in zip(found, costs, strict=True)])
    plan, *numbers = (nx.from_numpy(x, type_as=M) for x in (plan, linear, value + constant, f, g))
    if grad == "envelope" and is_graded:  # the gradient of the minimum in M is the plan
        slope = nx.sum(M * plan, axis=(1, 2))
        numbers[:2] = (x + slope - nx.detach(slope) for x in numbers[:2])
    return OTResult(
        value_linear=numbers[0],
        value=numbers[1],
        potentials=tuple(numbers[2:]),
        plan=plan,
        backend=nx,
        log={
            "n_iter": max(x.n_iter for x in found),
            "lower_bound": lower + constant,
            "gap": value - lower,
        },
    )


def _weights(costs: Matrix, weights: list[Matrix | None]) -> list[tuple[Any, Any]]:
    """Return the weights of each problem, uniform by default."""
    k, n, m = costs.shape
    a, b = (
        np.full((k, size), 1 / size) if w is None else np.broadcast_to(w, (k, size))
        for w, size in zip(weights, (n, m), strict=True)
    )
    return [(np.ascontiguousarray(p), q * (p.sum() / q.sum())) for p, q in zip(a, b, strict=True)]


def _solved(
    costs: Matrix, weights: list[Matrix | None], reg: float, max_iter: float
) -> list[EntropicPlan]:
    """Solve each problem, exactly without ``reg``."""
    pairs = _weights(costs, weights)
    if reg > 0:
        return [
            entropic_plan(M, *w, reg, max_iter=max(max_iter, 1000))
            for M, w in zip(costs, pairs, strict=True)
        ]
    a, b = (np.stack(x) for x in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # float64 may prove a larger gap only
        many = solve_many(costs, a, b, rtol=TUNING.rtol, plans=True, potentials=True)
    return [
        EntropicPlan(x.plan, *x.potentials, x.value, x.lower_bound, 0.0, x.n_iter, x.converged)
        for x in many
    ]


@replaces("batch.solve_sample_batch")
def solve_sample_batch(
    X_a: Any,
    X_b: Any,
    reg: Any = None,
    a: Any = None,
    b: Any = None,
    metric: str = "sqeuclidean",
    p: float = 2,
    max_iter: int = 1000,
    tol: float = 1e-5,
    method: str = "auto",
    inner_iter: int = 1,
    inner_reg: float = 1e-3,
    reg_type: str = "entropy",
    grad: str = "envelope",
) -> Any:
    """Solve problems between points, as :func:`ot.batch.solve_sample_batch` does."""
    from ot.batch import dist_batch

    M = dist_batch(X_a, X_b, metric=metric, p=p)
    options = max_iter, tol, method, inner_iter, inner_reg, reg_type, grad
    return solve_batch(M, reg, a, b, *options)
