"""Solve one easy entropic problem by scaling a stored kernel, with little overhead per call.

The plan is stored, too, so that its proof needs no exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Matrix, Potentials, Vector
from ..geometry import Geometry
from ..kernels.dense import gibbs
from ..kernels.sinkhorn import scale
from ..kernels.vectors import log
from ..problems.balanced import EntropicObjective
from ..problems.plan import Explicit, Plan
from ..problems.problem import make_problem
from ..problems.rounding import round_onto


@dataclass(frozen=True)
class ScaledEntropicTuning:
    """Limits of problems that are easy."""

    max_entries: int = 1 << 20  # of the cost; larger ones gain from threads
    max_exponent: float = 300.0  # largest C/η: no entry of the kernel underflows
    max_sweeps: int = 1000  # beyond, Newton's method is faster
    least_error: float = 1e-14  # of the marginals, as a share of the mass, that float64 can show
    tightening: float = 1e-2  # factor on the error where the gap is not reached


TUNING = ScaledEntropicTuning()


class ScaledPlan(NamedTuple):
    """A feasible plan and potentials, with the bounds that they prove, in the user's units."""

    plan: Matrix
    potentials: Potentials
    value: float
    lower: float
    marginal_error: float
    n_sweeps: int


def solve_by_scaling(
    M: Matrix | Geometry,
    a: Vector,
    b: Vector,
    reg: float,
    *,
    gap: float,
    error: float,
    max_sweeps: float,
) -> ScaledPlan | None:
    """Solve min <M, X> - reg H(X); return None where sweeps are slow or do not reach the gap.

    Sweeps end when the marginals err by at most ``error`` in l1, as a share of the mass, before
    the plan is rounded. Problems that ``solve`` refuses are refused with the same sentences.
    """
    objective = EntropicObjective.of(make_problem(M, a, b), reg)
    problem, eta = objective.problem, objective.eta
    p, q, (n, m) = problem.p, problem.q, problem.shape
    if (
        n * m > TUNING.max_entries
        or problem.geometry.allowed is not None  # forbidden pairs, whose cost is inf
        or not problem.cost_max <= TUNING.max_exponent * eta
        or min(p.min(), q.min()) <= 0
    ):
        return None
    K, u, v = np.empty((n, m)), np.empty(n), np.ones(m)
    gibbs(problem.geometry.matrix(), np.zeros(n), np.zeros(m), 1 / eta, K, 0, n)
    n_sweeps, most = 0, int(min(max_sweeps, TUNING.max_sweeps))
    while n_sweeps < most:
        error = max(error, TUNING.least_error)
        made, missed = scale(K, p, q, error, most - n_sweeps, u, v)
        n_sweeps += made
        if not missed <= error:
            return None
        found = _proved(objective, K, u, v, n_sweeps)
        if found.value - found.lower <= gap:
            return found
        if error == TUNING.least_error:
            return None
        error *= TUNING.tightening
    return None


def _proved(
    objective: EntropicObjective, K: Matrix, u: Vector, v: Vector, n_sweeps: int
) -> ScaledPlan:
    """Round the plan diag(u) K diag(v), and return it with the bounds that it proves."""
    problem, eta = objective.problem, objective.eta
    potentials = eta * log(u), eta * log(v)
    X = K * u[:, None]
    X *= v
    rounded = round_onto(Explicit(X), problem.p, problem.q)
    X = rounded.plan.toarray()
    upper, lower, _ = objective.prove(Plan(Explicit(X)), potentials)
    value, lower_bound = objective.bounds_to_user(upper, lower)
    X *= problem.mass
    error = problem.mass * rounded.marginal_error
    return ScaledPlan(
        X, objective.to_user_potentials(potentials), value, lower_bound, error, n_sweeps
    )
