"""Audits by `certify` of plans and potentials from anywhere: their bounds hold the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np

import epsilot

from .kinds import (
    INSIDE,
    ORDINARY,
    balanced_weights,
    draw_dense,
    draw_kind,
    is_near,
    is_ordinary,
    result_defects,
)
from .objectives import ROUND_OFF, TINY, Kind, unit_of
from .outcome import Outcome, ask
from .problems import Array, Rng, number, pick


def audits(rng: Rng) -> Outcome:
    """Draw a problem, and a plan, potentials or both; audit them and compare with a proved bracket.

    The bracket is that of a solve, recomputed from its plan and potentials in extended precision.
    """
    C, a, b, words = draw_dense(rng)
    kind = draw_kind(rng, C, a, b)
    plan, potentials, given = draw_proposal(rng, C, a, b)
    outcome = Outcome(kind.label, label=f"{words}; {kind.keywords}; {given}")
    answer = ask(epsilot.certify, C, a, b, plan=plan, potentials=potentials, **kind.keywords)
    outcome.blame(*answer.defects)
    is_plain = is_ordinary(kind, C, a, b, {}) and is_tame(C, a, plan, potentials)
    if answer.value is None:
        outcome.ending = "refused" if answer.is_refused else "raised"
        if answer.is_refused and is_plain:
            outcome.blame(f"refused a valid audit: {answer.error}")
        return outcome
    outcome.ending = "feasible" if answer.value.is_feasible else "infeasible"
    solved = ask(epsilot.solve, C, a, b, max_seconds=2.0, on_limit="ignore", **kind.keywords)
    if solved.value is None:
        return outcome
    C, a, b = (np.longdouble(x) for x in (C, a, b))
    if result_defects(solved.value, kind, C, a, b):
        return outcome  # what the part `kinds` is for
    return outcome.blame(*certificate_defects(answer.value, kind, C, a, b, solved.value))


def certificate_defects(
    certificate: Any, kind: Kind, C: Array, a: Array, b: Array, solved: Any
) -> list[str]:
    """Say where the bounds of an audit contradict a proved bracket."""
    a, b = balanced_weights(kind, a, b)
    above = kind.plan_value(C, a, b, np.longdouble(solved.plan))
    below = kind.dual_value(C, a, b, *(np.longdouble(x) for x in solved.potentials))
    upper, lower = np.longdouble(certificate.upper), np.longdouble(certificate.lower)
    if np.isnan(upper) or np.isnan(lower):
        return [f"certify finds {certificate}"]
    unit = unit_of(kind, C, a, b) + abs(above.value) + (below.size if kind.reg else 0)
    room = ROUND_OFF * unit + TINY
    found = []
    if not upper >= below.value - room:
        found.append(f"certify: upper bound {upper!s} below the optimum, at least {below.value!s}")
    if not lower <= above.value + room:
        found.append(f"certify: lower bound {lower!s} above the optimum, at most {above.value!s}")
    return found


def draw_proposal(rng: Rng, C: Array, a: Array, b: Array) -> tuple[Any, Any, str]:
    """Draw a plan, potentials, or both, good or bad."""
    n, m = C.shape
    what = pick(rng, {"plan": 3, "potentials": 3, "both": 4})
    plan = potentials = None
    how = pick(rng, {"product": 3, "random": 2, "zeros": 1, "one entry": 1, "any size": 1})
    if what != "potentials":
        with np.errstate(all="ignore"):
            total = np.longdouble(b).sum()
            product = np.asarray(np.outer(np.longdouble(a), np.longdouble(b) / total), dtype=float)
        scale = number(rng) if how == "any size" else float(max(a.max(), 5e-324))
        plan = {
            "product": product,
            "random": np.minimum(rng.random((n, m)), 1.0) * min(scale, 1e300),
            "zeros": np.zeros((n, m)),
            "one entry": np.eye(n, m) * (np.arange(n) == 0)[:, None] * scale,
            "any size": np.minimum(scale, 1e300) * rng.random((n, m)),
        }[how]
    if what != "plan":
        unit = min(float(np.abs(C).max()) or 1.0, 1e300)
        scale = min(number(rng, unit), 1e300)
        potentials = rng.normal(size=n) * scale, rng.normal(size=m) * scale
        how += f", potentials of {scale:.0e}"
    return plan, potentials, f"{what}: {how}"


def is_tame(C: Array, a: Array, plan: Any, potentials: Any) -> bool:
    """Tell whether what is audited is in proportion to the problem."""
    unit, mass = float(np.abs(C).max()) or 1.0, float(a.max())
    if plan is not None and plan.any() and not is_near(plan.max() / mass, ORDINARY):
        return False
    sizes = [] if potentials is None else [np.abs(x).max() / unit for x in potentials]
    return is_near(unit, INSIDE) and all(x < ORDINARY[1] for x in sizes)
