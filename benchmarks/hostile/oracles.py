"""The truth, bracketed in extended precision without any code of epsilot.

POT's network simplex or HiGHS supplies a plan and potentials, log-domain sweeps with Newton
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

Array = np.ndarray

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
