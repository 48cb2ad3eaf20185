"""Check unbalanced problems with one penalty per point, over 600 decades."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import epsilot

from .kinds import draw_accuracy, draw_dense, draw_kind, draw_limits, draw_method, judged
from .problems import Array, CaseOutcome, Rng, ask, number, pick
from .proofs import FuzzKind, largest_cost


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
