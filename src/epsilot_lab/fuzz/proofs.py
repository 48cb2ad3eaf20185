"""Prove bounds in extended precision, without code of epsilot.

A feasible plan bounds the optimum from above, feasible potentials bound it from below (weak
duality), so that recomputing both values in ``np.longdouble`` needs no second solver. Functions
named ``*_defects`` yield one sentence per false claim. Arrays may have leading axes, one per
problem of a stack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import epsilot
from epsilot.problems.plan import Gibbs

from .problems import ask

# -- values and duals of every kind ------------------------------------------------------------

Array = np.ndarray

#: Accuracy of bounds, values and marginals, relative to the terms that are summed.
ROUND_OFF = 1e-12
#: Smallest costs and masses at which float64 can keep that promise.
TINY = np.longdouble(1e-305)
#: Excess of potentials over costs or prices that is allowed: the last bit of the largest.
LAST_BIT = 1e-15


class Sum(NamedTuple):
    """A value, and the size of the terms it is the sum of."""

    value: Array
    size: Array


@dataclass(frozen=True)
class FuzzKind:
    """A kind of problem: minimise <M, X>, perhaps - reg H(X), with its marginal constraints.

    A price is one number for its side, or an array with one per point; inf keeps a marginal. Costs
    of inf forbid a pair.
    """

    name: str = "balanced"  # or partial, kl, tv
    price_a: float | Array = math.inf
    price_b: float | Array = math.inf
    mass: float | None = None
    reg: float | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments of `solve` that ask for it."""
        words: dict[str, Any] = {} if self.reg is None else {"reg": self.reg}
        if self.name == "partial":
            return {**words, "mass": self.mass}
        if self.name == "balanced":
            return words
        price: Any = self.prices
        if not any(isinstance(x, np.ndarray) for x in price) and price[0] == price[1]:
            price = price[0]
        return {**words, "unbalanced": price, "unbalanced_type": self.name}

    @property
    def label(self) -> str:
        """The name in the summary."""
        return self.name + ("" if self.reg is None else " with reg")

    @property
    def is_hard(self) -> bool:
        """Tell whether both marginals are exact, so that the mass is fixed."""
        return self.name in ("balanced", "partial") or not self.finite_prices

    @property
    def prices(self) -> tuple[float | Array, float | Array]:
        """Return the cost of violated marginals."""
        return self.price_a, self.price_b

    @property
    def finite_prices(self) -> list[np.longdouble]:
        """Return all prices but those of inf."""
        every = np.concatenate([np.ravel(np.longdouble(x)) for x in self.prices])
        return list(every[every < np.inf])

    # -- plans -----------------------------------------------------------------------------------

    def plan_value(self, C: Array, a: Array, b: Array, X: Array) -> Sum:
        """Return the objective of plans."""
        terms = priced(C, X)
        value, size = terms.sum(axis=(-1, -2)), np.abs(terms).sum(axis=(-1, -2))
        if self.name in ("kl", "tv"):
            charge = kl_terms if self.name == "kl" else tv_terms
            for given, r, w in zip(self.prices, sums(X), (a, b), strict=True):
                price = np.longdouble(given)
                paid = np.where(price < np.inf, price, 0) * charge(r, w)
                value, size = value + paid.sum(axis=-1), size + paid.sum(axis=-1)
        if self.reg is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                entropies = np.where(X > 0, X * np.log(X), 0)
            reg = np.longdouble(self.reg)
            value = value + reg * entropies.sum(axis=(-1, -2))
            size = size + reg * (np.abs(entropies) + X).sum(axis=(-1, -2))
        return Sum(value, size)

    def plan_defects(self, a: Array, b: Array, X: Array) -> Iterator[str]:
        """Yield what makes plans infeasible."""
        if not (np.isfinite(X).all() and (X >= 0).all()):
            yield "a plan has an entry that is negative or not finite"
            return
        total = max(a.sum(axis=-1).max(), b.sum(axis=-1).max())
        room = ROUND_OFF * total + TINY
        for side, r, w, price in zip(
            ("rows", "columns"), sums(X), (a, b), self.prices, strict=True
        ):
            if self.name == "partial":
                error = np.maximum(r - w, 0).sum(axis=-1)
            else:
                free = np.where(w > 0, 0, r) if self.name == "kl" else 0 * r
                error = np.where(np.isinf(price), np.abs(r - w), free).sum(axis=-1)
            if not (error <= room).all():
                yield f"marginals: {side} off by {float(error.max() / total):.1e} of the mass"
        if self.name == "partial":
            moved = X.sum(axis=(-1, -2))
            if not (np.abs(moved - np.longdouble(self.mass)) <= room).all():
                yield f"the plan moves {moved.max()!s} instead of {self.mass!r}"

    # -- potentials ------------------------------------------------------------------------------

    def dual_value(self, C: Array, a: Array, b: Array, f: Array, g: Array) -> Sum:
        """Return the lower bound that potentials prove, with the best constant if mass is fixed."""
        gain = {"kl": kl_gain, "tv": tv_gain}.get(self.name, linear_gain)
        value: Any = np.longdouble(0)
        size: Any = np.longdouble(0)
        for price, w, x in zip(self.prices, (a, b), (f, g), strict=True):
            terms = gain(np.longdouble(price), w, np.where(w > 0, x, 0))
            value, size = value + terms.sum(axis=-1), size + np.abs(terms).sum(axis=-1)
        if self.reg is None:
            if self.name != "partial":
                return Sum(value, size)
            level = slack(C, f, g).min(axis=(-1, -2))  # the best µ
            moved = np.longdouble(self.mass) * level
            return Sum(value + moved, size + np.abs(moved))
        reg = np.longdouble(self.reg)
        with np.errstate(invalid="ignore"):
            exponents = (f[..., :, None] + g[..., None, :] - C) / reg
        top = exponents.max(axis=(-1, -2))
        top = np.where(top > -np.inf, top, 0)  # no pair is allowed
        with np.errstate(divide="ignore"):
            log_sum = top + np.log(np.exp(exponents - top[..., None, None]).sum(axis=(-1, -2)))
        if self.is_hard:
            total = np.longdouble(self.mass) if self.name == "partial" else a.sum(axis=-1)
            constant = reg * total * (np.log(total) - log_sum)
        else:
            constant = -reg * np.exp(log_sum - 1)
        return Sum(value + constant, size + np.abs(constant))

    def potential_defects(self, C: Array, f: Array, g: Array) -> Iterator[str]:
        """Yield what makes potentials infeasible."""
        if np.isnan(f).any() or np.isnan(g).any():
            yield "a potential is NaN"
            return
        if self.name == "partial" and not ((f <= 0).all() and (g <= 0).all()):
            yield "a potential of a partial problem is positive"
        if self.name == "tv":
            for x, price in zip((f, g), self.prices, strict=True):
                below = x < -np.longdouble(price) * (1 + LAST_BIT)
                if below.any():
                    least = np.broadcast_to(price, below.shape)[below][0]
                    yield f"a potential is {x[below][0]!s}, below the price {least!r}"
        if self.reg is None and self.name != "partial":
            least = slack(C, f, g).min(axis=(-1, -2))
            largest = largest_cost(C)
            if not (least >= -LAST_BIT * largest - TINY).all():
                worst = float((-least / np.where(largest > 0, largest, 1)).max())
                yield f"potentials exceed the cost by {worst:.1e} of the largest"


def priced(C: Array, X: Array) -> Array:
    """Return C X, where forbidden pairs without mass cost nothing."""
    return C * X if np.isfinite(C).all() else np.where(X == 0, 0, C) * X


def largest_cost(C: Array) -> Array:
    """Return the largest |cost| of pairs that are not forbidden."""
    return np.asarray(np.where(np.isfinite(C), np.abs(C), 0).max(axis=(-1, -2)))


def slack(C: Array, f: Array, g: Array) -> Array:
    """Return C - f ⊕ g; a potential of -inf leaves all the room there is."""
    return C - f[..., :, None] - g[..., None, :]


def sums(X: Array) -> tuple[Array, Array]:
    """Return the row and the column sums of plans."""
    return X.sum(axis=-1), X.sum(axis=-2)


def kl_terms(r: Array, w: Array) -> Array:
    """Return r log(r/w) - r + w without cancellation where r is near w."""
    with np.errstate(all="ignore"):
        positive = np.where(w > 0, w, 1)
        ratio, x = r / positive, np.where(w > 0, (r - w) / positive, 0)
        far = np.where(ratio > 0, ratio * np.log(ratio), 0) - x
        near = sum((-1) ** k * x**k / (k * (k - 1)) for k in range(2, 18))
        return w * np.where(np.abs(x) < 0.05, near, far)


def tv_terms(r: Array, w: Array) -> Array:
    """Return |r - w|."""
    return np.abs(r - w)


def linear_gain(price: Array, w: Array, x: Array) -> Array:
    """Return what potentials count in a bound where marginals are kept."""
    return w * x


def tv_gain(price: Array, w: Array, x: Array) -> Array:
    """Return the same in total variation: a potential above the price counts as the price."""
    return w * np.minimum(x, price)


def kl_gain(price: Array, w: Array, x: Array) -> Array:
    """Return λ w (1 - exp(-x/λ))."""
    free = np.where(price < np.inf, price, 1)
    return np.where(price < np.inf, -free * w * np.expm1(-x / free), w * x)


# -- the one check of bounds ---------------------------------------------------------------------


class BoundClaim(NamedTuple):
    """The library's claims on one problem, or on many of one shape."""

    value: Any
    lower: Any
    plan: Any  # None: not returned
    potentials: Any  # None: not returned


def unit_of(kind: FuzzKind, C: Array, a: Array, b: Array) -> Array:
    """Return the size of values: costs, unless prices are lower or all costs are zero."""
    costs = largest_cost(C)
    if kind.name in ("kl", "tv"):
        free = max(kind.finite_prices, default=np.longdouble(0))
        most = sum(np.max(np.longdouble(price)) for price in kind.prices)
        costs = np.where(costs > 0, np.minimum(costs, most), free)
    if kind.name == "partial":
        return np.asarray(costs * np.longdouble(kind.mass))
    return np.asarray(costs * np.maximum(a.sum(axis=-1), b.sum(axis=-1)))


def claim_defects(kind: FuzzKind, C: Array, a: Array, b: Array, claim: BoundClaim) -> Iterator[str]:
    """Yield every bound that its own plan or potentials do not prove.

    All arrays are extended: C (..., n, m), a (..., n), b (..., m).
    """
    value, lower = np.longdouble(claim.value), np.longdouble(claim.lower)
    if not (np.isfinite(value).all() and np.isfinite(lower).all()):
        yield f"not finite: value {value!s}, lower bound {lower!s}"
        return
    unit = unit_of(kind, C, a, b) + np.maximum(np.abs(value), np.abs(lower))
    misfit = np.longdouble(0)
    above = below = None
    if claim.plan is not None:
        X = np.longdouble(claim.plan)
        found = list(kind.plan_defects(a, b, X))
        yield from found
        above = None if found else kind.plan_value(C, a, b, X)
    if claim.potentials is not None:
        f, g = (np.longdouble(x) for x in claim.potentials)
        found = list(kind.potential_defects(C, f, g))
        yield from found
        below = None if found else kind.dual_value(C, a, b, f, g)
    for part in (above, below):
        unit = unit if part is None or kind.reg is None else unit + part.size
    room = ROUND_OFF * unit + TINY
    if above is not None and kind.name in ("kl", "tv"):
        misfit = 8 * np.finfo(float).eps * misfit_size(kind, a, b, X)
    yield from _where(
        ~(value >= lower - room), "lower bound {1!s} above the value {0!s}", value, lower
    )
    if above is not None:
        off = ~(np.abs(above.value - value) <= room + misfit)
        yield from _where(off, "value {0!s} is not that of the plan, {1!s}", value, above.value)
    if below is not None:
        off = ~(lower <= below.value + room)
        yield from _where(
            off, "lower bound {0!s} is above what the potentials prove, {1!s}", lower, below.value
        )
        off = ~(value >= below.value - room)
        yield from _where(
            off, "wrong upper bound {0!s} below the optimum, at least {1!s}", value, below.value
        )
    if above is not None:
        off = ~(lower <= above.value + room)
        yield from _where(
            off, "wrong lower bound {0!s} above the optimum, at most {1!s}", lower, above.value
        )


def misfit_size(kind: FuzzKind, a: Array, b: Array, X: Array) -> Array:
    """Return what marginals are charged with: those of a stored plan are rounded.

    In total variation the whole marginal is rounded; a divergence grows by the misfit only.
    """
    size: Any = np.longdouble(0)
    for given, r, w in zip(kind.prices, sums(X), (a, b), strict=True):
        price = np.longdouble(given)
        of = np.maximum(r, w) if kind.name == "tv" else np.abs(r - w)
        size = size + (np.where(price < np.inf, price, 0) * of).sum(axis=-1)
    return np.asarray(size)


def _where(bad: Any, text: str, *numbers: Any) -> Iterator[str]:
    """Yield a sentence with the numbers of the first problem for which a claim is false."""
    bad = np.atleast_1d(bad)
    if not bad.any():
        return
    k = int(np.flatnonzero(bad.ravel())[0])
    shown = [np.broadcast_to(np.atleast_1d(x), bad.shape).ravel()[k] for x in numbers]
    more = f" ({int(bad.sum())} of {bad.size} problems)" if bad.size > 1 else ""
    yield text.format(*shown) + more


def bracket(kind: FuzzKind, C: Array, a: Array, b: Array) -> tuple[np.longdouble, np.longdouble]:
    """Return bounds of a balanced problem's optimum, proved by the plan and potentials of a solve.

    The library only proposes them; nothing is known of what it refuses.
    """
    goal = {"rtol": 1e-9} if kind.reg is None else kind.keywords
    arrays = (np.asarray(x, dtype=np.float64) for x in (C, a, b))
    solved = ask(epsilot.solve, *arrays, **goal, max_seconds=1.0, on_limit="ignore").value
    if solved is None:
        return np.longdouble(-np.inf), np.longdouble(np.inf)
    f, g = (np.longdouble(x) for x in solved.potentials)
    if kind.reg is None:  # with the best constant any potentials are feasible
        f = f + slack(C, f, g).min()
    low = kind.dual_value(C, a, b, f, g).value
    return low, kind.plan_value(C, a, b, np.longdouble(solved.plan)).value


# -- claims of a result ------------------------------------------------------------------------

#: Methods whose plans are vertices.
EXACT = ("exact", "small_simplex", "restricted_simplex")


def result_defects(
    result: Any, kind: FuzzKind, C: Array, a: Array, b: Array, *, with_history: bool = False
) -> Iterator[str]:
    """Yield which bounds a result does not prove, and which forms of its plan differ.

    The bounds of the history must hold the ones that were proved at the end.
    """
    a, b = balanced_weights(kind, a, b)
    claim = BoundClaim(result.value, result.lower_bound, result.plan, result.potentials)
    found = list(claim_defects(kind, C, a, b, claim))
    yield from found
    yield from form_defects(result, max(a.sum(), b.sum()))
    X = np.longdouble(result.plan)
    terms = priced(C, X)
    linear, unit = terms.sum(), np.abs(terms).sum() + unit_of(kind, C, a, b)
    if not abs(linear - np.longdouble(result.value_linear)) <= ROUND_OFF * unit + TINY:
        yield f"value_linear {result.value_linear!r} is not <M, plan> = {linear!s}"
    if found or not with_history:
        return
    room = ROUND_OFF * (unit + kind.plan_value(C, a, b, X).size) + TINY
    for k, record in enumerate(result.history):
        if not record.lower <= result.value + room:
            yield f"wrong lower bound of record {k}: {record.lower!r} above {result.value!r}"
        if not record.upper >= result.lower_bound - room:
            yield f"wrong upper bound of record {k}: {record.upper!r} below {result.lower_bound!r}"


def balanced_weights(kind: FuzzKind, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the weights as the library reads them: equal totals where both are kept."""
    if kind.is_hard and kind.name != "partial":
        return a, b * (a.sum() / b.sum())
    return a, b


def form_defects(result: Any, total: Any) -> Iterator[str]:
    """Yield which forms of a plan differ from the array."""
    X, plan = np.longdouble(result.plan), result.plan_operator
    n, m = X.shape
    kept = plan.tosparse()
    total = max(total, X.sum())
    forms = {
        "products": (plan @ np.ones(m), plan.T @ np.ones(n)),
        "marginals": plan.marginals(),
        "tosparse": (kept @ np.ones(m), kept.T @ np.ones(n)),
    }
    for name, (rows, cols) in forms.items():
        error = np.abs(X.sum(axis=1) - rows).sum() + np.abs(X.sum(axis=0) - cols).sum()
        if not error <= ROUND_OFF * total + TINY:
            yield f"plan and its {name} differ by {float(error / total):.1e} of the mass"


def target_defects(
    result: Any, kind: FuzzKind, C: Array, a: Array, b: Array, accuracy: dict[str, Any]
) -> Iterator[str]:
    """Yield where a run calls itself converged with a gap above its target, or below zero."""
    gap, lower = np.longdouble(result.gap), np.longdouble(result.lower_bound)
    unit = unit_of(kind, C, a, b)
    room = ROUND_OFF * (unit + abs(lower)) + TINY
    size = 2 * unit
    if kind.reg is not None:
        largest = max(largest_cost(C), np.longdouble(kind.reg), *kind.finite_prices)
        size = (largest or 1) * (np.longdouble(kind.mass or 0) or a.sum() + b.sum())
    allowed = allowed_gap(accuracy, lower, size, is_entropic=kind.reg is not None)
    if result.converged and not gap <= allowed * (1 + 1e-9) + room:
        yield f"converged with gap {result.gap!r} above the target {allowed!s}"
    if result.converged and not gap >= -room:
        yield f"converged with the negative gap {result.gap!r}"


def allowed_gap(accuracy: dict[str, Any], lower: Array, size: Array, *, is_entropic: bool) -> Array:
    """Return the gap within which runs may call themselves converged, for values of a size."""
    if "eps" in accuracy or "tol" in accuracy:
        return np.longdouble(accuracy.get("eps", accuracy.get("tol")))
    if is_entropic:
        return np.asarray(1.001e-6 * size)
    rtol = np.longdouble(accuracy.get("rtol", 0.01))
    tiny = np.maximum(np.longdouble(1e-9), 1e-13 / rtol) * size
    return np.asarray(rtol * np.maximum(np.abs(lower), tiny))


def vertex_defects(
    result: epsilot.Result, C: Array, goal: dict[str, Any], max_iter: int | None = None
) -> Iterator[str]:
    """Yield why the plan of a simplex is not a vertex with tight arcs."""
    if result.method not in EXACT or was_cut_short(result, max_iter):
        return
    X = result.plan
    most = sum(X.shape) - 1
    for count in (np.count_nonzero(X), result.plan_operator.tosparse().nnz):
        if count > most:
            yield f"an exact plan with {count} nonzeros, more than {most}"
    is_fine = goal.get("rtol", 1.0) <= 1e-9
    if not (is_fine or result.method in ("exact", "small_simplex")) or not result.converged:
        return
    f, g = (np.longdouble(x) for x in result.potentials)
    room = slack(C, f, g)[X > 0]
    if room.size and not room.max() <= 1e-11 * largest_cost(C) + TINY:
        worst = float(room.max() / largest_cost(C))
        yield f"an exact plan is positive on an arc with slack {worst:.1e} of the largest cost"


def was_cut_short(result: epsilot.Result, max_iter: int | None = None) -> bool:
    """Tell whether a run ended before the basis of its simplex carried all the mass.

    The last certificate of a run that a limit ends may still reach the target.
    """
    limits = ("MAX_ITER", "MAX_SECONDS", "INTERRUPTED", "CALLBACK")
    is_of_sweeps = isinstance(result.plan_operator.core, Gibbs)
    return is_of_sweeps or result.status.name in limits or result.n_iter == max_iter


def bit_defects(first: Any, second: Any, what: str) -> list[str]:
    """Say where two results that must be equal to the last bit are not."""
    names = ("value", "value_linear", "lower_bound", "n_iter", "status", "marginal_error")
    different = [name for name in names if getattr(first, name) != getattr(second, name)]
    pairs = [(first.plan, second.plan), *zip(first.potentials, second.potentials, strict=True)]
    if any(x.tobytes() != y.tobytes() for x, y in pairs):
        different.append("plan or potentials")
    if [r._replace(seconds=0.0) for r in first.history] != [
        r._replace(seconds=0.0) for r in second.history
    ]:
        different.append("history")
    return [f"{what} differs in {', '.join(different)}"] if different else []
