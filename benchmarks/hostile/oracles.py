"""The truth, bracketed in extended precision without any code of epsilot.

POT's network simplex or HiGHS supplies a plan and potentials, log-domain Sinkhorn with Newton
steps those of the entropic problem. Nobody's word is taken: the plan is made feasible and
priced, the potentials are made feasible and summed, both in ``np.longdouble``; weak duality
does the rest. A poor oracle gives a wide bracket, never a wrong one.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import ot
from scipy.optimize import linprog
from scipy.special import logsumexp

Array = np.ndarray

#: A bracket narrower than this (in units of the cost's range) needs no second opinion.
NARROW = 1e-12
SWEEPS = 300
NEWTON_STEPS = 25
#: Below this η (of the cost's range) the entropy no longer shows: the simplex's bracket will do.
LEAST_ETA = 1e-15


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
    pairs = []
    if 1 not in C.shape:
        pairs.append(_emd(C, p, q))
        if eta > LEAST_ETA:
            pairs.append(_sinkhorn(C, p, q, eta, pairs[0][1]))
    else:
        pairs.append((np.outer(p, q), np.zeros_like(p)))
    high = min(_entropic_value(C, feasible(X, p, q), eta) for X, _ in pairs)
    low = max(entropic_dual(C, p, q, f, eta) for _, f in pairs)
    # In the user's units X = mass Y, and sum X log X = mass (sum Y log Y + log mass).
    shift = unit.offset + np.longdouble(reg) * np.log(unit.mass)
    return Truth(*(unit.mass * (shift + unit.spread * x) for x in (low, high)))


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


def _sinkhorn(
    C: Array, p: Array, q: Array, eta: np.longdouble, start: Array
) -> tuple[Array, Array]:
    """Return a plan and potentials by float64 sweeps, Newton steps and a few extended sweeps."""
    cost, rows, cols = (np.asarray(x, dtype=np.float64) for x in (C, p, q))
    log_p, log_q, level = np.log(rows), np.log(cols), float(eta)
    f = np.asarray(start, dtype=np.float64) if level < 1e-4 else np.zeros(p.size)
    for k in range(SWEEPS):
        now = max(level, 0.5**k)
        g = now * (log_q - logsumexp((f[:, None] - cost) / now, axis=0))
        f = now * (log_p - logsumexp((g - cost) / now, axis=1))
    f, g = _newton(cost, rows, cols, f, g, level)
    long_f = np.longdouble(f)
    for _ in range(3):
        long_g = eta * (np.log(q) - _lse((long_f[:, None] - C) / eta, 0))
        long_f = eta * (np.log(p) - _lse((long_g - C) / eta, 1))
    return np.exp((long_f[:, None] + long_g - C) / eta), long_f


def _lse(x: Array, axis: int) -> Array:
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + np.squeeze(top, axis)


def _newton(C: Array, p: Array, q: Array, f: Array, g: Array, eta: float) -> tuple[Array, Array]:
    """Improve potentials by Newton steps while they lower the violation of the marginals."""
    n = p.size
    best = np.inf
    for _ in range(NEWTON_STEPS):
        with np.errstate(all="ignore"):
            X = np.exp((f[:, None] + g - C) / eta)
        r, c = X.sum(axis=1), X.sum(axis=0)
        miss = np.concatenate([p - r, q - c])
        size = np.abs(miss).sum()
        if not size < 0.9 * best:
            break
        best, kept = size, (f, g)
        hessian = np.block([[np.diag(r), X], [X.T, np.diag(c)]]) / eta
        try:
            step = np.linalg.lstsq(hessian, miss, rcond=1e-15)[0]
        except np.linalg.LinAlgError:
            break
        f, g = f + step[:n], g + step[n:]
    return kept if np.isfinite(best) else (f, g)


def linear_cost(cost: Array, X: Array) -> np.longdouble:
    """Return <cost, X> in extended precision."""
    return np.longdouble((np.longdouble(1) * cost * X).sum())


def entropy(X: Array) -> np.longdouble:
    """Return H(X) = -sum X log X in extended precision."""
    return -plain_entropy(np.longdouble(1) * X)
