"""Check every kind of problem over 600 decades, penalties per point, and audits by ``certify``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import epsilot

from .problems import COSTS, Array, CallRecord, CaseOutcome, Rng, ask, number, pick
from .proofs import (
    ROUND_OFF,
    TINY,
    FuzzKind,
    balanced_weights,
    largest_cost,
    result_defects,
    target_defects,
    unit_of,
)
from .solves import METHODS as BALANCED

# -- kinds -------------------------------------------------------------------------------------

SAFETY_SECONDS = 2.0
#: Ratios of prices, masses, accuracies and regularisations to costs that every kind must take.
ORDINARY = 1e-7, 1e7
#: Ratio of two prices beyond which float64 certifies neither.
FARTHEST = 1e13
#: Accuracy, relative to the size of values, that every method reaches.
REACHABLE = 1e-10
#: Negative costs up to this multiple of prices leave masses within the range of float64.
GROWTH = 300.0
#: Regularisations below this share of the costs take Sinkhorn more sweeps than a case has.
SHARP = 1e-4
#: Costs and masses far from the ends of float64.
INSIDE = 1e-140, 1e140
#: kind -> its share of the cases
KINDS = {"balanced": 2.0, "partial": 2.0, "kl": 3.0, "tv": 3.0}
EXACT = ("exact", "small_simplex", "restricted_simplex", "auction")


def kinds(rng: Rng) -> CaseOutcome:
    """Draw a problem of any kind, solve it, and check what its plan and potentials prove."""
    C, a, b, words = draw_dense(rng)
    kind = draw_kind(rng, C, a, b)
    accuracy = draw_accuracy(rng, kind, C, a, b)
    method = draw_method(rng, kind)
    keywords = {**kind.keywords, **accuracy, "method": method}
    limits = draw_limits(rng, method)
    shown = ", ".join(f"{k}={v}" for k, v in {**keywords, **limits}.items())
    outcome = CaseOutcome(kind.label, method, label=f"{words}; {shown}")
    answer = ask(epsilot.solve, C, a, b, **keywords, **limits)
    return judged(outcome, answer, kind, C, a, b, accuracy, limits)


def judged(
    outcome: CaseOutcome,
    answer: CallRecord,
    kind: FuzzKind,
    C: Array,
    a: Array,
    b: Array,
    accuracy: dict[str, float],
    limits: dict[str, Any],
    may_refuse: bool = False,
) -> CaseOutcome:
    """Add the defects of an answer to a problem of any kind."""
    is_plain = is_ordinary(kind, C, a, b, accuracy) and not may_refuse
    result = outcome.settled(answer, is_plain)
    if result is None:
        return outcome
    extended = tuple(np.longdouble(x) for x in (C, a, b))
    outcome.blame(*result_defects(result, kind, *extended))
    outcome.blame(*target_defects(result, kind, *extended, accuracy))
    is_limited = "max_iter" in limits or result.status.name == "MAX_SECONDS"
    is_plain = is_plain and is_certifiable(result, kind, *extended)
    if is_plain and outcome.method == "auto" and not is_limited and not result.converged:
        outcome.blame(f"auto ended as {result.status.name} without a limit")
    return outcome


def is_certifiable(result: Any, kind: FuzzKind, C: Array, a: Array, b: Array) -> bool:
    """Tell whether a gap is neither round-off nor that of a regularisation too small to sweep."""
    misfit = max(kind.finite_prices, default=np.longdouble(0)) * (a.sum() + b.sum())
    largest = largest_cost(C)
    is_sharp = kind.reg is not None and kind.reg < SHARP * largest
    # Exponents of plans for KL penalties end at a multiple of the largest cost, as sweeps do.
    end = REACHABLE * largest * max(a.sum(), b.sum()) if kind.name == "kl" else 0.0
    return not is_sharp and result.gap > 1e-12 * abs(result.lower_bound) + 1e-14 * misfit + end


# -- draws -------------------------------------------------------------------------------------


def draw_dense(rng: Rng) -> tuple[Array, Array, Array, str]:
    """Draw a small cost and positive weights of any scale."""
    n, m = (int(k) for k in rng.integers(1, pick_size(rng), 2))
    family = str(rng.choice(list(COSTS)))
    C = COSTS[family](rng, n, m)
    sign = pick(rng, {"": 4, "negative": 0.5, "both signs": 1})
    C = -C if sign == "negative" else C - np.median(C) if sign else C
    C, scale = at_scale(rng, C)
    a, of_a = at_scale(rng, draw_masses(rng, n))
    b, of_b = (
        at_scale(rng, draw_masses(rng, m))
        if rng.random() < 0.3
        else (at_total(draw_masses(rng, m), a), of_a)
    )
    words = f"{n} x {m} {family} {sign} costs of {scale:.0e}, masses {of_a:.0e} and {of_b:.0e}"
    return C, a, b, " ".join(words.split())


def pick_size(rng: Rng) -> int:
    """Draw one more than the largest number of rows."""
    return {"tiny": 4, "small": 9, "medium": 25}[pick(rng, {"tiny": 4, "small": 5, "medium": 1.5})]


def at_scale(rng: Rng, x: Array) -> tuple[Array, float]:
    """Return an array times a number of any decade that leaves it finite, and the number."""
    largest = float(np.abs(x).max()) or 1.0
    scale = 1.0 if rng.random() < 0.4 else number(rng)
    if not scale * largest * x.size < 1e308:
        scale = 1e307 / largest / x.size
    scaled = np.asarray(np.longdouble(x) * np.longdouble(scale), dtype=np.float64)
    if not scaled.any() and x.any():
        scaled.flat[int(np.abs(x).argmax())] = 5e-324
    return scaled, scale


def at_total(w: Array, other: Array) -> Array:
    """Return weights with the total of others, as far as float64 holds it."""
    total = np.longdouble(other).sum()
    scaled = np.asarray(np.longdouble(w) / np.longdouble(w).sum() * total, dtype=np.float64)
    return scaled if scaled.any() else np.asarray(w, dtype=np.float64) * float(other.max())


def draw_masses(rng: Rng, n: int) -> Array:
    """Draw weights of total about one, some of them zero or tiny."""
    how = pick(rng, {"even": 2, "random": 4, "zeros": 1, "decades": 1, "whole": 1})
    w = {
        "even": lambda: np.full(n, 1.0 / n),
        "random": lambda: rng.dirichlet(np.ones(n)),
        "zeros": lambda: rng.random(n) * (rng.random(n) < 0.6),
        "decades": lambda: 10 ** rng.uniform(-12, 0, n),
        "whole": lambda: rng.integers(0, 4, n).astype(float),
    }[how]()
    if not w.any():
        w[rng.integers(n)] = 1.0
    return np.asarray(w)


def draw_kind(rng: Rng, C: Array, a: Array, b: Array) -> FuzzKind:
    """Draw a kind with prices, mass and regularisation in proportion to costs, or of any decade."""
    unit = float(np.abs(C).max()) or 1.0
    reg = number(rng, unit) if rng.random() < 0.4 else None
    name = pick(rng, KINDS)
    if name == "partial":
        with np.errstate(over="ignore"):
            most = min(float(a.sum()), float(b.sum()), 1.7e308)
        mass = number(rng, most) if rng.random() < 0.4 else most * rng.uniform(0, 1)
        return FuzzKind("partial", mass=min(max(mass, 5e-324), most), reg=reg)
    if name == "balanced":
        return FuzzKind(reg=reg)
    prices = [number(rng, unit) for _ in range(2)]
    how = pick(rng, {"one": 5, "two": 3, "a kept": 0.7, "b kept": 0.7, "both kept": 0.2})
    if how == "one":
        prices[1] = prices[0]
    if how in ("a kept", "both kept"):
        prices[0] = math.inf
    if how in ("b kept", "both kept"):
        prices[1] = math.inf
    return FuzzKind(name, *prices, reg=reg)


def draw_accuracy(rng: Rng, kind: FuzzKind, C: Array, a: Array, b: Array) -> dict[str, float]:
    """Draw what to reach: by default nothing is said."""
    extended = [np.longdouble(x) for x in (C, a, b)]
    unit = float(min(max(unit_of(kind, *extended), 1e-320), 1e308))
    how = pick(rng, {"default": 4, "absolute": 3, "relative": 3})
    if how == "default" or (how == "relative" and kind.reg is not None):
        return {}
    if how == "relative":
        return {"rtol": 10 ** rng.uniform(-9, 0) if rng.random() < 0.7 else number(rng)}
    wanted = unit * 10 ** rng.uniform(-9, 0) if rng.random() < 0.7 else number(rng, unit)
    return {"eps" if kind.reg is None else "tol": float(min(max(wanted, 5e-324), 1.7e308))}


def draw_method(rng: Rng, kind: FuzzKind) -> str:
    """Draw a method that serves a kind; mostly auto."""
    if rng.random() < 0.6:
        return "auto"
    if kind.is_hard and kind.name != "partial":
        return str(rng.choice(dense_methods(kind.reg is not None)))
    if kind.name == "kl":
        return str(rng.choice(["unbalanced_sinkhorn", "unbalanced_pdasmd"]))
    if kind.reg is not None:
        return "clipped_sinkhorn"
    return str(rng.choice(dense_methods(False)))


def dense_methods(is_entropic: bool) -> list[str]:
    """Return the methods that take any dense cost."""
    return [
        name
        for name, method in BALANCED.items()
        if method.costs in ("any", "small") and (method.solves_entropic or not is_entropic)
    ]


def draw_limits(rng: Rng, method: str) -> dict[str, Any]:
    """Draw limits that keep a case short."""
    limits: dict[str, Any] = {"max_seconds": SAFETY_SECONDS, "on_limit": "ignore"}
    if method not in ("auto", *EXACT) or rng.random() < 0.15:
        limits["max_iter"] = int(10 ** rng.uniform(0, 3))
    return limits


def is_near(x: Any, ends: tuple[float, float]) -> bool:
    """Tell whether a number lies between two others."""
    return bool(ends[0] < x < ends[1])


def is_ordinary(kind: FuzzKind, C: Array, a: Array, b: Array, accuracy: dict[str, float]) -> bool:
    """Tell whether every number is in proportion, so that a refusal is a defect."""
    extended = [np.longdouble(x) for x in (C, a, b)]
    largest = largest_cost(extended[0])
    totals = [x.sum() for x in extended[1:]]
    sizes = [*totals, *([largest] if largest else [])]
    if not all(is_near(x, INSIDE) for x in sizes):
        return False
    are_equal = abs(totals[0] - totals[1]) <= 1e-9 * totals[0]
    if kind.is_hard and kind.name != "partial" and not are_equal:
        return False
    ratios = [max(totals) / min(totals)]
    unit = largest or np.longdouble(1)
    ratios += [price / unit for price in kind.finite_prices]
    if kind.reg is not None:
        ratios.append(np.longdouble(kind.reg) / unit)
    if kind.mass is not None:
        ratios.append(np.longdouble(kind.mass) / min(totals))
    if not all(is_near(x, ORDINARY) for x in ratios):
        return False
    if kind.finite_prices and max(kind.finite_prices) / min(kind.finite_prices) > FARTHEST:
        return False
    least = sum(np.min(np.longdouble(price)) for price in kind.prices)
    if kind.name == "tv" and C.min() < -least:
        return False
    if kind.name == "kl" and C.min() < -GROWTH * (least + (kind.reg or 0)):
        return False
    size = max([unit, *kind.finite_prices])
    size = max(size, np.longdouble(kind.reg or 0)) * max(totals)
    wanted = [x for name, x in accuracy.items() if name != "rtol"]
    return all(x > REACHABLE * size for x in wanted) and 1e-9 < accuracy.get("rtol", 1) < 1e9


# -- audits ------------------------------------------------------------------------------------


def audits(rng: Rng) -> CaseOutcome:
    """Draw a problem, and a plan, potentials or both; audit them and compare with proved bounds.

    The bounds are those of a solve, recomputed from its plan and potentials in extended precision.
    """
    C, a, b, words = draw_dense(rng)
    kind = draw_kind(rng, C, a, b)
    plan, potentials, given = draw_proposal(rng, C, a, b)
    outcome = CaseOutcome(kind.label, label=f"{words}; {kind.keywords}; {given}")
    answer = ask(epsilot.certify, C, a, b, plan=plan, potentials=potentials, **kind.keywords)
    is_plain = is_ordinary(kind, C, a, b, {}) and is_tame(C, a, plan, potentials)
    if outcome.settled(answer, is_plain) is None:
        return outcome
    outcome.ending = "feasible" if answer.value.is_feasible else "infeasible"
    solved = ask(epsilot.solve, C, a, b, max_seconds=2.0, on_limit="ignore", **kind.keywords)
    if solved.value is None:
        return outcome
    C, a, b = (np.longdouble(x) for x in (C, a, b))
    if any(result_defects(solved.value, kind, C, a, b)):
        return outcome  # what the part `kinds` is for
    return outcome.blame(*certificate_defects(answer.value, kind, C, a, b, solved.value))


def certificate_defects(
    certificate: Any, kind: FuzzKind, C: Array, a: Array, b: Array, solved: Any
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


def prices(rng: Rng) -> CaseOutcome:
    """Draw a problem with penalties per point, solve it, and check its plan and potentials."""
    C, a, b, words = draw_dense(rng)
    kind = draw_priced_kind(rng, C, a, b)
    accuracy = draw_accuracy(rng, kind, C, a, b)
    method = draw_method(rng, kind)
    method = "unbalanced_sinkhorn" if method == "unbalanced_pdasmd" else method
    keywords = {**kind.keywords, **accuracy, "method": method}
    limits = draw_limits(rng, method)
    outcome = CaseOutcome(f"{kind.label} per point", method, label=f"{words}; {keywords} {limits}")
    answer = ask(epsilot.solve, C, a, b, **keywords, **limits)
    return judged(outcome, answer, kind, C, a, b, accuracy, limits, may_refuse(kind, a, b))


def draw_priced_kind(rng: Rng, C: Array, a: Array, b: Array) -> FuzzKind:
    """Draw a kind with a penalty per point on one side or both; some of them are inf."""
    unit = float(largest_cost(C)) or 1.0
    kind = FuzzKind()
    while kind.name not in ("kl", "tv"):
        kind = draw_kind(rng, C, a, b)
    sides = [draw_prices(rng, unit, C.shape[k]) for k in (0, 1)]
    which = pick(rng, {"both": 6, "a": 1, "b": 1})
    return replace(
        kind,
        price_a=sides[0] if which != "b" else kind.price_a,
        price_b=sides[1] if which != "a" else kind.price_b,
    )


def draw_prices(rng: Rng, unit: float, n: int) -> Array:
    """Draw n prices: alike, some decades apart, or anywhere in float64."""
    how = pick(rng, {"alike": 4, "decades": 3, "far": 1, "anywhere": 0.5})
    if how == "anywhere":
        found = np.array([number(rng, unit) for _ in range(n)])
    else:
        middle = number(rng, unit) if how == "far" else unit * 10 ** rng.uniform(-3, 3)
        spread = 0.5 if how == "alike" else 4.0
        with np.errstate(over="ignore", under="ignore"):
            found = middle * 10 ** rng.uniform(-spread, spread, n)
    found = np.clip(found, 5e-324, 1.7e308)
    if rng.random() < 0.3:
        found = np.where(rng.random(n) < rng.choice([0.2, 0.7, 1.0]), math.inf, found)
    return np.asarray(found)


def may_refuse(kind: FuzzKind, a: Array, b: Array) -> bool:
    """Tell whether marginals that are kept may have no plan: one side has no point that may give.

    Points without weight cannot give in a divergence.
    """
    can_give = [
        np.isfinite(price) & ((w > 0) | (kind.name == "tv"))
        for price, w in zip(kind.prices, (a, b), strict=True)
    ]
    return not all(side.any() for side in can_give)
