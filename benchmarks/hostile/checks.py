"""What must hold of a result, whatever was solved and however it ended.

Everything is recomputed in extended precision from what the user gets. Each function yields one
sentence for every claim that is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import epsilot
from epsilot.problems.plan import Gibbs

from . import oracles
from .problems import Drawn

Array = np.ndarray

#: Promised accuracy of marginals, values and bounds, relative to the mass and the largest cost.
ROUND_OFF = 1e-12
#: Smallest costs and masses at which float64 can keep that promise.
TINY = np.longdouble(1e-305)
EXACT = ("exact", "small_simplex", "restricted_simplex")


@dataclass(frozen=True)
class Wish:
    """What was asked of `solve`: exactly one of eps, rtol and reg."""

    eps: float | None = None
    rtol: float | None = None
    reg: float | None = None
    tol: float | None = None
    stop: str = "certificate"

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments that say so."""
        return {k: v for k, v in vars(self).items() if v is not None}

    def allowed(self, problem: Drawn, lower: float) -> np.longdouble:
        """Return the gap within which a run may call itself converged."""
        largest, mass = problem.largest, problem.mass
        if self.eps is not None:
            return np.longdouble(self.eps)
        if self.reg is not None:
            default = 1e-6 * (largest or 1) * mass
            return np.longdouble(default if self.tol is None else self.tol)
        rtol = np.longdouble(0.01 if self.rtol is None else self.rtol)
        tiny = max(np.longdouble(1e-9), 1e-13 / rtol) * largest * mass
        return np.longdouble(rtol * max(abs(np.longdouble(lower)), tiny))


@dataclass(frozen=True)
class Scales:
    """The units of round-off of a problem."""

    mass: np.longdouble
    value: np.longdouble

    @classmethod
    def of(cls, problem: Drawn, reg: float | None) -> Scales:
        """Return them; an entropy of mass m counts about log(m) and log(size) of reg."""
        mass, unit = problem.mass, problem.largest
        if reg is not None:
            unit = unit + np.longdouble(reg) * (
                abs(np.log(mass)) + np.log(np.longdouble(problem.cost.size)) + 1
            )
        return cls(mass, mass * unit)


def truth_of(problem: Drawn, reg: float | None, *, by_highs: bool = False) -> oracles.Truth:
    """Bracket the optimum of a problem."""
    a, b = problem.weights
    if reg is None:
        return oracles.transport(problem.cost, a, b, by_highs=by_highs)
    return oracles.entropic(problem.cost, a, b, reg)


def result_defects(
    result: epsilot.Result,
    problem: Drawn,
    wish: Wish,
    truth: oracles.Truth,
    *,
    with_history: bool = True,
) -> Iterator[str]:
    """Yield every claim of a result that is false."""
    scales = Scales.of(problem, wish.reg)
    numbers = (result.value, result.value_linear, result.lower_bound, result.gap)
    if not np.isfinite(numbers).all():
        yield f"not finite: value {result.value!r}, lower bound {result.lower_bound!r}"
        return
    yield from bound_defects(result, truth, scales, with_history)
    yield from target_defects(result, wish, problem, scales)
    yield from plan_defects(result, problem, wish, scales)
    yield from potential_defects(result, problem, wish, scales)
    if result.method in EXACT and not was_cut_short(result):
        yield from vertex_defects(result, problem, wish)


def was_cut_short(result: epsilot.Result) -> bool:
    """Tell whether a run ended before the basis of its simplex carried all the mass."""
    limits = ("MAX_ITER", "MAX_SECONDS", "INTERRUPTED", "CALLBACK")
    is_of_sweeps = isinstance(result.plan_operator.core, Gibbs)
    return is_of_sweeps or result.status.name in limits


def bound_defects(
    result: epsilot.Result, truth: oracles.Truth, scales: Scales, with_history: bool
) -> Iterator[str]:
    """Yield what is wrong with the bracket or with those of the history."""
    slack = ROUND_OFF * scales.value + TINY
    records = [(result.lower_bound, result.value, "the result")]
    if with_history:
        records += [(r.lower, r.upper, f"record {k}") for k, r in enumerate(result.history)]
    for lower, upper, where in records:
        if not lower <= truth.high + slack:
            yield f"wrong lower bound of {where}: {lower!r} above the optimum {truth.high!s}"
            return
        if not upper >= truth.low - slack:
            yield f"wrong upper bound of {where}: {upper!r} below the optimum {truth.low!s}"
            return


def target_defects(
    result: epsilot.Result, wish: Wish, problem: Drawn, scales: Scales
) -> Iterator[str]:
    """Yield where a run calls itself converged and is not, or the reverse."""
    room = 1e-3 * ROUND_OFF * scales.value + TINY
    allowed = wish.allowed(problem, result.lower_bound)
    if result.converged and not result.gap <= allowed * (1 + 1e-9) + room:
        yield f"converged with gap {result.gap!r} above the target {allowed!s}"
    is_reached = result.gap <= result.target
    if result.converged != is_reached and not abs(result.gap - result.target) <= room:
        yield f"converged is {result.converged} with gap {result.gap!r}, target {result.target!r}"


def plan_defects(
    result: epsilot.Result, problem: Drawn, wish: Wish, scales: Scales
) -> Iterator[str]:
    """Yield what is wrong with the plan in any of its forms, or with its price."""
    X = result.plan
    if not (np.isfinite(X).all() and (X >= 0).all()):
        yield f"the plan has the entry {X[~(X >= 0)].flat[0] if (~(X >= 0)).any() else X.max()!r}"
        return
    for name, rows, cols in plan_forms(result, X):
        yield from marginal_defects(name, rows, cols, problem, scales)
    slack = ROUND_OFF * scales.value + TINY
    linear = oracles.linear_cost(problem.cost, X)
    if not abs(linear - np.longdouble(result.value_linear)) <= slack:
        yield f"value_linear {result.value_linear!r} is not <M, plan> = {linear!s}"
    expected = linear if wish.reg is None else linear - wish.reg * oracles.entropy(X)
    if not abs(expected - np.longdouble(result.value)) <= slack:
        yield f"value {result.value!r} is not that of the plan, {expected!s}"


def plan_forms(result: epsilot.Result, X: Array) -> Iterator[tuple[str, Array, Array]]:
    """Yield the marginals of the plan as each of its forms has them."""
    plan = result.plan_operator
    n, m = X.shape
    exact = np.longdouble(1) * X
    yield "plan", exact.sum(axis=1), exact.sum(axis=0)
    yield "plan_operator products", plan @ np.ones(m), plan.T @ np.ones(n)
    yield "plan_operator.marginals", *plan.marginals()
    kept = plan.tosparse()
    yield "tosparse", kept @ np.ones(m), kept.T @ np.ones(n)


def marginal_defects(
    name: str, rows: Array, cols: Array, problem: Drawn, scales: Scales
) -> Iterator[str]:
    """Yield the sides on which a plan misses its weights."""
    for side, found, wanted in zip(("rows", "columns"), (rows, cols), problem.weights, strict=True):
        error = np.abs(np.longdouble(1) * found - wanted).sum()
        if not error <= ROUND_OFF * scales.mass + TINY:
            yield f"marginals of {name}: {side} off by {float(error / scales.mass):.1e} of the mass"


def potential_defects(
    result: epsilot.Result, problem: Drawn, wish: Wish, scales: Scales
) -> Iterator[str]:
    """Yield where the potentials are not feasible or do not give the lower bound."""
    f, g = result.potentials
    a, b = problem.weights
    if wish.reg is None:
        # Costs that the library computes may differ from ours in the last place.
        room = 0.0 if problem.is_stored else float(1e-15 * problem.largest)
        with np.errstate(invalid="ignore", over="ignore"):
            excess = (f[:, None] + g[None, :]) - problem.cost
        if not (excess <= room).all():
            yield f"potentials exceed the cost by {float(np.nanmax(excess) / problem.largest):.1e}"
    elif wish.stop != "certificate" or abs(scales.mass - 1) > 1e-9:
        return
    value = sum(
        (w[w > 0] * x[w > 0]).sum() for w, x in ((a, np.longdouble(f)), (b, np.longdouble(g)))
    )
    used = [np.abs(x[w > 0]).max() for w, x in ((a, f), (b, g))]
    slack = ROUND_OFF * (scales.value + scales.mass * max(used)) + TINY
    if not abs(value - np.longdouble(result.lower_bound)) <= slack:
        yield f"the lower bound {result.lower_bound!r} is not <f, a> + <g, b> = {value!s}"


def vertex_defects(result: epsilot.Result, problem: Drawn, wish: Wish) -> Iterator[str]:
    """Yield why the plan of a simplex is not a vertex with tight arcs."""
    n, m = problem.shape
    X = result.plan
    count = int(np.count_nonzero(X))
    if count > n + m - 1:
        yield f"an exact plan with {count} nonzeros, more than {n + m - 1}"
    stored = result.plan_operator.tosparse().nnz
    if stored > n + m - 1:
        yield f"a sparse exact plan with {stored} entries, more than {n + m - 1}"
    is_fine = wish.rtol is not None and wish.rtol <= 1e-9
    if not (is_fine or result.method in ("exact", "small_simplex")) or not result.converged:
        return
    f, g = (np.longdouble(x) for x in result.potentials)
    slack = (problem.cost - f[:, None] - g[None, :])[X > 0]
    if slack.size and not slack.max() <= 1e-11 * problem.largest + TINY:
        worst = float(slack.max() / problem.largest)
        yield f"an exact plan is positive on an arc with slack {worst:.1e} of the largest cost"


def certify_defects(result: epsilot.Result, problem: Drawn, truth: oracles.Truth) -> Iterator[str]:
    """Yield where an audit of the result's own plan and potentials disagrees with it."""
    audit = epsilot.certify(
        problem.M, problem.a, problem.b, plan=result.plan, potentials=result.potentials
    )
    scale = Scales.of(problem, None).value
    slack = ROUND_OFF * scale + TINY
    if not abs(np.longdouble(audit.upper) - np.longdouble(result.value_linear)) <= slack:
        yield f"certify finds the upper bound {audit.upper!r}, not {result.value_linear!r}"
    if not np.longdouble(audit.lower) >= np.longdouble(result.lower_bound) - slack:
        yield f"certify finds the lower bound {audit.lower!r} below {result.lower_bound!r}"
    if not audit.lower <= truth.high + slack:
        yield f"certify: wrong lower bound {audit.lower!r} above the optimum {truth.high!s}"
    if not audit.is_feasible:
        yield f"certify calls the plan infeasible (marginal error {audit.marginal_error!r})"
