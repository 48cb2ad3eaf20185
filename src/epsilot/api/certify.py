"""Certify plans and potentials of any origin: prove an upper and a lower bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from .._types import Matrix, Potentials
from ..arguments import numeric, unknown_argument
from ..barycenters.execute import audit as audit_barycenter
from ..barycenters.family import Costs, make_family
from ..engine.certificate import Certificate, certificate_of
from ..engine.execute import execute
from ..engine.request import Request, meant_keywords
from ..engine.run_plan import internal_potentials
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..labels import weights_like
from ..problems.kinds import UserProblem
from ..problems.objective import Objective
from ..problems.plan import Arcs, Core, Explicit, Plan
from ..problems.problem import Problem, make_problem
from ..problems.rounding import round_onto

#: Relative gap to which the missing plan or potentials are computed.
DERIVED_RTOL = 1e-4


def round_plan(X: ArrayLike, a: ArrayLike, b: ArrayLike) -> Matrix:
    """Round a nonnegative matrix X to a plan with marginals a and b.

    Altschuler, Weed, Rigollet 2017, Algorithm 2. A feasible X changes by round-off only.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> epsilot.round_plan(np.ones((2, 2)), [0.5, 0.5], [0.25, 0.75]).sum(axis=0)
    array([0.25, 0.75])
    """
    plan = _plan_array(X)
    problem = make_problem(np.zeros(plan.shape), a, b)
    core = _explicit(plan / problem.mass)
    return round_onto(core, problem.p, problem.q).plan.scaled(problem.mass).toarray()


def certify(
    M: Any,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    plan: Any = None,
    potentials: Any = None,
    reg: float | None = None,
    barycenter: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    **kind: object,
) -> Certificate:
    """Bound the optimal cost by a plan, by potentials, or by both.

    A plan with wrong marginals is rounded, and potentials are c-transformed. If only one of the
    two is given, the other is computed to a relative gap of 0.01 %, so that the gap measures the
    distance of the given one from the optimum.

    Parameters
    ----------
    M, a, b
        The problem, as in :func:`solve`.
    plan : (n, m) array-like, sparse matrix or plan operator, optional
        Nonnegative plan; need not be feasible.
    potentials : (f, g), optional
        Any dual potentials in units of M; need not be feasible.
    reg : float, optional
        Bound the optimum of the entropic problem min <M, X> - reg H(X) instead.
    barycenter : (m,) array-like, optional
        Certify a barycentre of the histograms ``a``, a (k, n) array or a list. ``plan`` is then a
        list of k plans to it, and ``potentials`` a list of k pairs. Missing plans are computed to
        0.01 %, and missing potentials to 0.1 %.
    weights : (k,) array-like, optional
        With ``barycenter``: the weights of the histograms.
    **kind
        The keywords of :func:`solve` that select a kind of problem, such as ``mass``.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> c = epsilot.certify(np.array([[0.0, 1.0], [1.0, 0.0]]), plan=np.eye(2) / 2)
    >>> c.upper, c.is_feasible
    (0.0, True)
    """
    if barycenter is not None:
        return _barycenter(M, a, barycenter, weights, plan, potentials, reg)
    if weights is not None:
        raise InvalidProblem(
            "weights was given without barycenter; it weights the histograms of a barycentre only."
        )
    rtol = DERIVED_RTOL if reg is None else None
    request = Request.of({"rtol": rtol, "reg": reg, "on_limit": "ignore", **kind})
    for name in request.options or ():
        raise unknown_argument("certify", name, meant_keywords())
    if plan is None and potentials is None:
        raise InvalidProblem("neither plan nor potentials was given; certify needs at least one.")
    return audit(request, M, a, b, plan=plan, potentials=potentials)


def audit(
    request: Request,
    M: ArrayLike | Geometry,
    a: ArrayLike | None,
    b: ArrayLike | None,
    *,
    plan: ArrayLike | Plan | None,
    potentials: tuple[ArrayLike, ArrayLike] | None,
) -> Certificate:
    """Certify as ``certify`` does, with the kind and the accuracy of a request."""
    a, b = weights_like(M, a, b)
    problem = request.kind.problem(UserProblem(M, a, b))
    objective = request.kind.objective(problem, request.reg)
    start = None
    if potentials is not None:
        start = objective.own_potentials(*internal_potentials(potentials, problem))
    core = None if plan is None else _core(plan, objective.problem)
    if core is None or start is None:
        derived = execute(problem, request)
        core = _core(derived.plan_operator, objective.problem) if core is None else core
        start = _internal(derived.potentials, objective) if start is None else start
    f, g = start
    rows = f, objective.row_potential(g)
    lower = [objective.dual(row)[1] for row in rows]
    best = max(range(len(rows)), key=lower.__getitem__)
    if not lower[best] > -math.inf:
        raise InvalidProblem(
            "the potentials are too far from optimal ones: in float64 they prove no finite lower "
            "bound (leave them out, and certify computes others)."
        )
    return certificate_of(objective, core, rows[best])


def _barycenter(
    M: Costs,
    A: Any,
    b: ArrayLike,
    weights: ArrayLike | None,
    plans: Any,
    potentials: Any,
    reg: float | None,
) -> Certificate:
    """Return the bounds that a barycentre proves."""
    rtol = DERIVED_RTOL if reg is None else None
    derived = Request(rtol=rtol, reg=reg, on_limit="ignore")
    family = make_family(A if A is not None else [], M, weights, reg=derived.reg)
    k, m = family.shape
    histogram = numeric(b, "barycenter").ravel()
    if histogram.shape != (m,):
        raise InvalidProblem(
            f"barycenter has {histogram.size} entries; it must have {m}, one for each column of "
            "the cost."
        )
    for name, given in (("plan", plans), ("potentials", potentials)):
        if given is not None and len(given) != k:
            raise InvalidProblem(
                f"{name} has {len(given)} entries; with barycenter it must have {k}, one for each "
                "histogram."
            )
    members = [member.problem for member in family.members]
    cores = columns = None
    if plans is not None:
        cores = [_core(plan, problem) for plan, problem in zip(plans, members, strict=True)]
    if potentials is not None:
        pairs = [
            internal_potentials(pair, problem)
            for pair, problem in zip(potentials, members, strict=True)
        ]
        columns = np.stack([g for _, g in pairs])
    return audit_barycenter(family, histogram, cores, columns, derived)


def _internal(potentials: Potentials, objective: Objective) -> Potentials:
    """Convert the potentials of a result to internal units."""
    f, g = potentials
    return objective.from_user(f), objective.own_potentials(f, g / objective.problem.unit)[1]


def _core(plan: ArrayLike | Plan, problem: Problem) -> Core:
    """Return a plan in internal units, or reject one of another shape."""
    X = plan if isinstance(plan, Plan) else _plan_array(plan)
    if X.shape != problem.shape:
        raise InvalidProblem(
            f"the plan has shape {X.shape}; it must have the cost's shape {problem.shape} "
            "(transpose it?)."
        )
    return X.scaled(1 / problem.mass) if isinstance(X, Plan) else _explicit(X / problem.mass)


def _explicit(X: Matrix | csr_array) -> Arcs | Explicit:
    return Arcs.of(X) if hasattr(X, "tocsr") else Explicit(X)


def _plan_array(X: ArrayLike | csr_array) -> Matrix | csr_array:
    """Return a dense or sparse plan, or reject one that is not finite and nonnegative."""
    if hasattr(X, "tocsr"):
        plan = X.tocsr()
        entries = np.asarray(plan.data)
    else:
        plan = entries = numeric(X, "the plan")
    if plan.ndim != 2 or 0 in plan.shape:
        raise InvalidProblem(f"the plan has shape {plan.shape}; it must be an (n, m) matrix.")
    if not np.isfinite(entries).all() or (entries < 0).any():
        worst = entries[~np.isfinite(entries) | (entries < 0)].flat[0]
        raise InvalidProblem(
            f"the plan has the entry {worst:.6g}; its entries must be finite and nonnegative "
            "(clip tiny negative entries first)."
        )
    return plan
