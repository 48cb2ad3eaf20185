"""Every kind of problem: what a plan costs and what potentials prove, in extended precision.

No code of epsilot is used. A plan and potentials that are feasible bound the optimum from both
sides (weak duality), so that recomputing their values is a proof that needs no second solver.
Arrays may have leading axes, which are those of many problems of one shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

#: Accuracy of bounds, values and marginals, relative to the terms that are summed.
ROUND_OFF = 1e-12
#: Smallest costs and masses at which float64 can keep that promise.
TINY = np.longdouble(1e-305)
#: How far potentials may exceed costs or prices: the last bit of the largest of them.
LAST_BIT = 1e-15


class Sum(NamedTuple):
    """A value, and the size of the terms it is the sum of."""

    value: Array
    size: Array


@dataclass(frozen=True)
class Kind:
    """What is minimised: <M, X>, perhaps - reg H(X), and how marginals are constrained."""

    name: str = "balanced"  # or partial, kl, tv
    price_a: float = math.inf
    price_b: float = math.inf
    mass: float | None = None
    reg: float | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments of `solve` that ask for it."""
        asked: dict[str, Any] = {} if self.reg is None else {"reg": self.reg}
        if self.name == "partial":
            return {**asked, "mass": self.mass}
        if self.name == "balanced":
            return asked
        price = self.price_a if self.price_a == self.price_b else (self.price_a, self.price_b)
        return {**asked, "unbalanced": price, "unbalanced_type": self.name}

    @property
    def label(self) -> str:
        """What the summary counts."""
        return self.name + ("" if self.reg is None else " with reg")

    @property
    def is_hard(self) -> bool:
        """Whether both marginals are kept, so that the mass is fixed."""
        return self.name in ("balanced", "partial") or self.prices == (math.inf, math.inf)

    @property
    def prices(self) -> tuple[float, float]:
        """What missing the marginals costs."""
        return self.price_a, self.price_b

    # -- plans -----------------------------------------------------------------------------------

    def plan_value(self, C: Array, a: Array, b: Array, X: Array) -> Sum:
        """Return the objective of plans."""
        terms = C * X
        value, size = terms.sum(axis=(-1, -2)), np.abs(terms).sum(axis=(-1, -2))
        if self.name in ("kl", "tv"):
            charge = kl_terms if self.name == "kl" else tv_terms
            for price, r, w in zip(self.prices, sums(X), (a, b), strict=True):
                if price < math.inf:
                    paid = np.longdouble(price) * charge(r, w).sum(axis=-1)
                    value, size = value + paid, size + paid
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
            elif price < math.inf:
                error = np.where(w > 0, 0, r).sum(axis=-1) if self.name == "kl" else 0 * r[..., 0]
            else:
                error = np.abs(r - w).sum(axis=-1)
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
                if not (x >= -np.longdouble(price) * (1 + LAST_BIT)).all():
                    yield f"a potential is {x.min()!s}, below the price {price!r}"
        if self.reg is None and self.name != "partial":
            least = slack(C, f, g).min(axis=(-1, -2))
            largest = np.abs(C).max(axis=(-1, -2))
            if not (least >= -LAST_BIT * largest - TINY).all():
                worst = float((-least / np.where(largest > 0, largest, 1)).max())
                yield f"potentials exceed the cost by {worst:.1e} of the largest"


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


def linear_gain(price: np.longdouble, w: Array, x: Array) -> Array:
    """Return what potentials count in a bound where marginals are kept."""
    return w * x


def tv_gain(price: np.longdouble, w: Array, x: Array) -> Array:
    """Return the same in total variation: a potential above the price counts as the price."""
    return w * np.minimum(x, price)


def kl_gain(price: np.longdouble, w: Array, x: Array) -> Array:
    """Return λ w (1 - exp(-x/λ))."""
    return w * x if price == np.inf else -price * w * np.expm1(-x / price)


# -- the one check of bounds ---------------------------------------------------------------------


class Claim(NamedTuple):
    """What the library says of one problem, or of many of one shape."""

    value: Any
    lower: Any
    plan: Any  # None: not returned
    potentials: Any  # None: not returned


def unit_of(kind: Kind, C: Array, a: Array, b: Array) -> Array:
    """Return the size of values: costs, unless prices are lower or all costs are zero."""
    costs = np.abs(C).max(axis=(-1, -2))
    if kind.name in ("kl", "tv"):
        price_a, price_b = (np.longdouble(price) for price in kind.prices)
        free = max(
            (price for price in (price_a, price_b) if price < np.inf), default=np.longdouble(0)
        )
        costs = np.where(costs > 0, np.minimum(costs, price_a + price_b), free)
    if kind.name == "partial":
        return np.asarray(costs * np.longdouble(kind.mass))
    return np.asarray(costs * np.maximum(a.sum(axis=-1), b.sum(axis=-1)))


def claim_defects(kind: Kind, C: Array, a: Array, b: Array, claim: Claim) -> Iterator[str]:
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
    if kind.name == "tv":  # the misfit of a stored plan is rounded, and charged with its rounding
        price = max((p for p in kind.prices if p < math.inf), default=0.0)
        total = a.sum(axis=-1) + b.sum(axis=-1)
        misfit = np.longdouble(price) * total * 8 * np.finfo(float).eps
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


def _where(bad: Any, text: str, *numbers: Any) -> Iterator[str]:
    """Yield a sentence with the numbers of the first problem for which a claim is false."""
    bad = np.atleast_1d(bad)
    if not bad.any():
        return
    k = int(np.flatnonzero(bad.ravel())[0])
    shown = [np.broadcast_to(np.atleast_1d(x), bad.shape).ravel()[k] for x in numbers]
    more = f" ({int(bad.sum())} of {bad.size} problems)" if bad.size > 1 else ""
    yield text.format(*shown) + more
