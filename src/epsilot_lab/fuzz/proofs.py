"""Prove bounds in extended precision, without code of epsilot.

A feasible plan bounds the optimum from above, feasible potentials bound it from below (weak
duality), so that recomputing both values needs no second solver. The oracles take plans and
potentials from POT, HiGHS or Newton steps and make them feasible in ``np.longdouble``. A poor
oracle can only widen its bounds. Functions named ``*_defects`` yield one sentence per false claim.
Arrays may have leading axes, one per problem of a stack.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import ot
from scipy.optimize import linprog

import epsilot
from epsilot.problems.plan import Gibbs

from .problems import Drawn

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


# -- oracles -----------------------------------------------------------------------------------

#: A bracket narrower than this (in units of the cost's range) needs no second opinion.
NARROW = 1e-12
NEWTON_STEPS = 12
#: Below this η (of the cost's range) the simplex's plan and potentials give the narrower bracket.
LEAST_ETA = 1e-9
#: Entries from which it is not followed far: a tenth of a second would become several.
LARGE = 6000


class Truth(NamedTuple):
    """The optimum lies in [low, high], in the user's units."""

    low: np.longdouble
    high: np.longdouble


class Unit(NamedTuple):
    """A problem in units of its own: costs in [0, 1], mass 1, no empty row or column."""

    C: Array  # longdouble
    p: Array
    q: Array
    offset: np.longdouble
    spread: np.longdouble
    mass: np.longdouble

    def to_user(self, low: np.longdouble, high: np.longdouble) -> Truth:
        """Return a bracket of the transport cost in the user's units."""
        return Truth(*(self.mass * (self.offset + self.spread * x) for x in (low, high)))


def unit_problem(cost: Array, a: Array, b: Array) -> Unit:
    """Shift and scale a problem; weights have equal totals up to rounding."""
    rows, cols = a > 0, b > 0
    offset = np.longdouble(cost.min())
    spread = np.longdouble(cost.max()) - offset or np.longdouble(1)
    C = (cost[np.ix_(rows, cols)] - offset) / spread
    p, q = np.longdouble(a[rows]), np.longdouble(b[cols])
    return Unit(C, p / p.sum(), q / q.sum(), offset, spread, np.longdouble(a.sum()))


def transport(cost: Array, a: Array, b: Array, *, by_highs: bool = False) -> Truth:
    """Bracket the optimal transport cost."""
    unit = unit_problem(cost, a, b)
    low, high = _transport(unit, by_highs)
    return unit.to_user(low, high)


def _transport(unit: Unit, by_highs: bool = False) -> tuple[np.longdouble, np.longdouble]:
    C, p, q = unit.C, unit.p, unit.q
    if 1 in C.shape:
        value = np.longdouble((C * np.outer(p, q)).sum())
        return value, value
    ways = (_highs, _emd) if by_highs else (_emd, _highs)
    low, high = np.longdouble(-np.inf), np.longdouble(np.inf)
    for way in ways:
        X, f = way(C, p, q)
        low = max(low, dual_value(C, p, q, f))
        high = min(high, (C * feasible(X, p, q)).sum())
        if high - low <= NARROW or C.size > 2000:
            break
    return low, high


def _emd(C: Array, p: Array, q: Array) -> tuple[Array, Array]:
    """Return a plan and row potentials by POT's network simplex."""
    rows, cols = (np.asarray(w, dtype=np.float64) for w in (p, q))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cost = np.ascontiguousarray(C, dtype=np.float64)
        X, log = ot.emd(rows, cols, cost, numItermax=10**6, log=True)
    return np.longdouble(X), np.longdouble(log["u"])


def _highs(C: Array, p: Array, q: Array) -> tuple[Array, Array]:
    """Return a plan and row potentials by the simplex of HiGHS."""
    n, m = C.shape
    A = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rhs = np.concatenate([p, q]).astype(float)
        found = linprog(C.astype(float).ravel(), A_eq=A, b_eq=rhs, method="highs-ds")
    if found.x is None:
        return np.outer(p, q), np.zeros_like(p)
    return np.longdouble(found.x.reshape(n, m)), np.longdouble(found.eqlin.marginals[:n])


def dual_value(C: Array, p: Array, q: Array, f: Array) -> np.longdouble:
    """Return <f, p> + <g, q> after two c-transforms: a lower bound for any f."""
    g = (C - f[:, None]).min(axis=0)
    f = (C - g).min(axis=1)
    return np.longdouble(p @ f + q @ g)


def feasible(X: Array, p: Array, q: Array) -> Array:
    """Round a matrix onto the plans from p to q."""
    X = np.maximum(X, 0)
    r = X.sum(axis=1)
    X = X * np.minimum(1, p / np.where(r > 0, r, 1))[:, None]
    c = X.sum(axis=0)
    X = X * np.minimum(1, q / np.where(c > 0, c, 1))
    e, d = np.maximum(p - X.sum(axis=1), 0), np.maximum(q - X.sum(axis=0), 0)
    total = max(e.sum(), d.sum())
    return X + np.outer(e, d) / total if total > 0 else X


# -- the entropic problem ----------------------------------------------------------------------


def entropic(cost: Array, a: Array, b: Array, reg: float) -> Truth:
    """Bracket min <M, X> - reg H(X) over plans X of the user's mass, H(X) = -sum X log X."""
    unit = unit_problem(cost, a, b)
    C, p, q = unit.C, unit.p, unit.q
    eta = np.longdouble(reg) / unit.spread
    low, high = _entropic(C, p, q, eta)
    # In the user's units X = mass Y, and sum X log X = mass (sum Y log Y + log mass).
    shift = unit.offset + np.longdouble(reg) * np.log(unit.mass)
    return Truth(*(unit.mass * (shift + unit.spread * x) for x in (low, high)))


def _entropic(
    C: Array, p: Array, q: Array, eta: np.longdouble
) -> tuple[np.longdouble, np.longdouble]:
    if 1 in C.shape:  # there is only one plan
        value = _entropic_value(C, np.outer(p, q), eta)
        return value, value
    pairs = [_emd(C, p, q)]
    if eta > (LEAST_ETA if C.size < LARGE else 1e-3):
        pairs.append(_centred(C, p, q, eta))
    low = max(entropic_dual(C, p, q, f, eta) for _, f in pairs)
    return low, min(_entropic_value(C, feasible(X, p, q), eta) for X, _ in pairs)


def _entropic_value(C: Array, X: Array, eta: np.longdouble) -> np.longdouble:
    return np.longdouble((C * X).sum() + eta * plain_entropy(X))


def plain_entropy(X: Array) -> np.longdouble:
    """Return sum X log X in extended precision."""
    kept = X[X > 0]
    return np.longdouble((kept * np.log(kept)).sum())


def entropic_dual(C: Array, p: Array, q: Array, f: Array, eta: np.longdouble) -> np.longdouble:
    """Return the dual value after one update of the columns: a lower bound for any f.

    The plan of the updated potentials has mass one, so nothing is subtracted.
    """
    scaled = (f[:, None] - C) / eta
    top = scaled.max(axis=0)
    g = eta * (np.log(q) - top - np.log(np.exp(scaled - top).sum(axis=0)))
    return np.longdouble(p @ f + q @ g)


def _centred(C: Array, p: Array, q: Array, eta: np.longdouble) -> tuple[Array, Array]:
    """Return plan and row potential, followed from η = 1 down by sweeps and Newton steps."""
    f, g, level = np.zeros_like(p), np.zeros_like(q), np.longdouble(4)
    while level != eta:
        level = max(level / 4, eta) if eta < 1 else eta
        for _ in range(2):
            f, g = _sweep(C, p, q, f, level)
        f, g = _newton(C, p, q, f, g, level)
    f, g = _sweep(C, p, q, f, eta)
    return _gibbs(C, f, g, eta), f


def _sweep(C: Array, p: Array, q: Array, f: Array, eta: np.longdouble) -> tuple[Array, Array]:
    """Return potentials after one exact update of the columns and one of the rows."""
    g = eta * (np.log(q) - _log_sum_exp((f[:, None] - C) / eta, 0))
    return eta * (np.log(p) - _log_sum_exp((g - C) / eta, 1)), g


def _log_sum_exp(x: Array, axis: int) -> Array:
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + np.squeeze(top, axis)


def _gibbs(C: Array, f: Array, g: Array, eta: np.longdouble) -> Array:
    return np.exp((f[:, None] + g - C) / eta)


def _newton(
    C: Array, p: Array, q: Array, f: Array, g: Array, eta: np.longdouble
) -> tuple[Array, Array]:
    """Maximise <f, p> + <g, q> - η sum X by damped Newton steps; residuals are extended."""
    X = _gibbs(C, f, g, eta)
    for _ in range(NEWTON_STEPS):
        miss = np.concatenate([p - X.sum(axis=1), q - X.sum(axis=0)])
        if not 1e-18 < np.abs(miss).sum() < np.inf:
            break
        step = eta * _newton_step(X, miss)
        slope, value = miss @ step, p @ f + q @ g - eta * X.sum()
        for k in range(12):
            df, dg = np.split(step / 2**k, [p.size])
            X = _gibbs(C, f + df, g + dg, eta)
            if p @ (f + df) + q @ (g + dg) - eta * X.sum() >= value + 1e-4 * slope / 2**k:
                break
        else:
            break
        f, g = f + df, g + dg
    return f, g


def _newton_step(X: Array, miss: Array) -> Array:
    """Solve [diag(r) X; Xᵀ diag(c)] step = miss, scaled to a unit diagonal."""
    sums = np.concatenate([X.sum(axis=1), X.sum(axis=0)])
    root = np.sqrt(np.maximum(sums, 1e-300))
    n = len(X)
    off = np.asarray(X / np.outer(root[:n], root[n:]), dtype=np.float64)
    # A small ridge stands for the direction (1, -1), in which nothing changes.
    H = np.block([[np.eye(n), off], [off.T, np.eye(len(off.T))]]) + 1e-13 * np.eye(len(sums))
    return np.linalg.solve(H, np.asarray(miss / root, dtype=np.float64)) / root


def linear_cost(cost: Array, X: Array) -> np.longdouble:
    """Return <cost, X> in extended precision."""
    return np.longdouble((np.longdouble(1) * cost * X).sum())


def entropy(X: Array) -> np.longdouble:
    """Return H(X) = -sum X log X in extended precision."""
    return -plain_entropy(np.longdouble(1) * X)


# -- claims of a result ------------------------------------------------------------------------

EXACT = ("exact", "small_simplex", "restricted_simplex")


@dataclass(frozen=True)
class DrawnGoal:
    """The target of a call of `solve`: exactly one of eps, rtol and reg."""

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


def truth_of(problem: Drawn, reg: float | None, *, by_highs: bool = False) -> Truth:
    """Bracket the optimum of a problem."""
    a, b = problem.weights
    if reg is None:
        return transport(problem.cost, a, b, by_highs=by_highs)
    return entropic(problem.cost, a, b, reg)


def result_defects(
    result: epsilot.Result,
    problem: Drawn,
    goal: DrawnGoal,
    truth: Truth,
    *,
    with_history: bool = True,
    max_iter: int | None = None,
) -> Iterator[str]:
    """Yield every claim of a result that is false; ``max_iter`` is the limit of its run."""
    scales = Scales.of(problem, goal.reg)
    numbers = (result.value, result.value_linear, result.lower_bound, result.gap)
    if not np.isfinite(numbers).all():
        yield f"not finite: value {result.value!r}, lower bound {result.lower_bound!r}"
        return
    yield from bound_defects(result, truth, scales, with_history)
    yield from target_defects(result, goal, problem, scales)
    yield from plan_defects(result, problem, goal, scales)
    yield from potential_defects(result, problem, goal, scales)
    if result.method in EXACT and not was_cut_short(result, max_iter):
        yield from vertex_defects(result, problem, goal)


def was_cut_short(result: epsilot.Result, max_iter: int | None = None) -> bool:
    """Tell whether a run ended before the basis of its simplex carried all the mass.

    The last certificate of a run that a limit ends may still reach the target.
    """
    limits = ("MAX_ITER", "MAX_SECONDS", "INTERRUPTED", "CALLBACK")
    is_of_sweeps = isinstance(result.plan_operator.core, Gibbs)
    return is_of_sweeps or result.status.name in limits or result.n_iter == max_iter


def bound_defects(
    result: epsilot.Result, truth: Truth, scales: Scales, with_history: bool
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
    result: epsilot.Result, goal: DrawnGoal, problem: Drawn, scales: Scales
) -> Iterator[str]:
    """Yield where a run calls itself converged and is not, or the reverse."""
    room = 1e-3 * ROUND_OFF * scales.value + TINY
    allowed = goal.allowed(problem, result.lower_bound)
    if result.converged and not result.gap <= allowed * (1 + 1e-9) + room:
        yield f"converged with gap {result.gap!r} above the target {allowed!s}"
    is_reached = result.gap <= result.target
    if result.converged != is_reached and not abs(result.gap - result.target) <= room:
        yield f"converged is {result.converged} with gap {result.gap!r}, target {result.target!r}"


def plan_defects(
    result: epsilot.Result, problem: Drawn, goal: DrawnGoal, scales: Scales
) -> Iterator[str]:
    """Yield what is wrong with the plan in any of its forms, or with its price."""
    X = result.plan
    if not (np.isfinite(X).all() and (X >= 0).all()):
        yield f"the plan has the entry {X[~(X >= 0)].flat[0] if (~(X >= 0)).any() else X.max()!r}"
        return
    for name, rows, cols in plan_forms(result, X):
        yield from marginal_defects(name, rows, cols, problem, scales)
    slack = ROUND_OFF * scales.value + TINY
    linear = linear_cost(problem.cost, X)
    if not abs(linear - np.longdouble(result.value_linear)) <= slack:
        yield f"value_linear {result.value_linear!r} is not <M, plan> = {linear!s}"
    expected = linear if goal.reg is None else linear - goal.reg * entropy(X)
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
    result: epsilot.Result, problem: Drawn, goal: DrawnGoal, scales: Scales
) -> Iterator[str]:
    """Yield where the potentials are not feasible or do not give the lower bound."""
    f, g = result.potentials
    a, b = problem.weights
    if goal.reg is None:
        # Costs that the library computes may differ from ours in the last place.
        room = 0.0 if problem.is_stored else float(1e-15 * problem.largest)
        with np.errstate(invalid="ignore", over="ignore"):
            excess = (f[:, None] + g[None, :]) - problem.cost
        if not (excess <= room).all():
            yield f"potentials exceed the cost by {float(np.nanmax(excess) / problem.largest):.1e}"
    elif goal.stop != "certificate" or abs(scales.mass - 1) > 1e-9:
        return
    value = sum(
        (w[w > 0] * x[w > 0]).sum() for w, x in ((a, np.longdouble(f)), (b, np.longdouble(g)))
    )
    used = [np.abs(x[w > 0]).max() for w, x in ((a, f), (b, g))]
    slack = ROUND_OFF * (scales.value + scales.mass * max(used)) + TINY
    if not abs(value - np.longdouble(result.lower_bound)) <= slack:
        yield f"the lower bound {result.lower_bound!r} is not <f, a> + <g, b> = {value!s}"


def vertex_defects(result: epsilot.Result, problem: Drawn, goal: DrawnGoal) -> Iterator[str]:
    """Yield why the plan of a simplex is not a vertex with tight arcs."""
    n, m = problem.shape
    X = result.plan
    count = int(np.count_nonzero(X))
    if count > n + m - 1:
        yield f"an exact plan with {count} nonzeros, more than {n + m - 1}"
    stored = result.plan_operator.tosparse().nnz
    if stored > n + m - 1:
        yield f"a sparse exact plan with {stored} entries, more than {n + m - 1}"
    is_fine = goal.rtol is not None and goal.rtol <= 1e-9
    if not (is_fine or result.method in ("exact", "small_simplex")) or not result.converged:
        return
    f, g = (np.longdouble(x) for x in result.potentials)
    slack = (problem.cost - f[:, None] - g[None, :])[X > 0]
    if slack.size and not slack.max() <= 1e-11 * problem.largest + TINY:
        worst = float(slack.max() / problem.largest)
        yield f"an exact plan is positive on an arc with slack {worst:.1e} of the largest cost"


def certify_defects(result: epsilot.Result, problem: Drawn, truth: Truth) -> Iterator[str]:
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
