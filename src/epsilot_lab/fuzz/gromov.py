"""Check Gromov-Wasserstein: bounds against the objective of couplings, summed over all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
import ot

import epsilot

from .problems import Array, CaseOutcome, Rng, ask, number, pick
from .proofs import ROUND_OFF, TINY

#: Sizes up to which all permutations are tried.
ENUMERATED = 6
#: Random starts of descents that look for a value below a lower bound, and their steps.
STARTS, STEPS = 8, 30
#: Sizes of points whose fourth powers float64 holds.
INSIDE = 1e-60, 1e60
LIMITS = {"max_seconds": 3.0, "on_limit": "ignore"}


def gromov(rng: Rng) -> CaseOutcome:
    """Draw two clouds or two matrices, couple them, and check the coupling and the bounds."""
    return (of_points if rng.random() < 0.7 else of_matrices)(rng)


def of_points(rng: Rng) -> CaseOutcome:
    """Check `solve_gromov`, perhaps fused with a linear cost."""
    X, Y, words = draw_clouds(rng)
    a, b = draw_weights(rng, len(X), len(Y))
    A, B = (squares(np.longdouble(Z)) for Z in (X, Y))
    size = np.longdouble(max(np.abs(A).max(), np.abs(B).max())) ** 2
    M, fused = draw_linear(rng, len(X), len(Y), float(size))
    keywords: dict[str, Any] = {"seed": int(rng.integers(100)), **fused}
    keywords |= {} if rng.random() < 0.5 else {"rtol": float(10 ** rng.uniform(-6, -0.3))}
    keywords |= {"max_ot": int(10 ** rng.uniform(0, 2))} if rng.random() < 0.2 else {}
    outcome = CaseOutcome("fused" if fused else "clouds", label=f"{words}; {keywords}")
    answer = ask(epsilot.solve_gromov, X, Y, a, b, **keywords, **LIMITS)
    is_due = all(INSIDE[0] < np.abs(Z - Z.mean(axis=0)).max() < INSIDE[1] for Z in (X, Y))
    result = outcome.settled(answer, is_due)
    if result is None:
        return outcome
    outcome.method = result.method
    share = np.longdouble(fused.get("alpha", 1.0))
    linear = np.zeros((len(X), len(Y)))
    if M is not None:
        linear = (1 - share if "alpha" in fused else 1) * M
    outcome.blame(*coupling_defects(rng, result, share**0.5 * A, share**0.5 * B, linear, a, b))
    if result.converged != (result.gap <= result.target * (1 + 1e-9)):
        outcome.blame(f"converged is {result.converged}, gap {result.gap!r}, {result.target!r}")
    return outcome


def of_matrices(rng: Rng) -> CaseOutcome:
    """Check `gromov_bounds` of any two matrices."""
    n, m = (int(k) for k in rng.integers(1, 8, 2))
    scale = 1.0 if rng.random() < 0.5 else float(10 ** rng.uniform(-60, 60))
    A, B = (scale * rng.normal(size=(k, k)) for k in (n, m))
    if rng.random() < 0.7:
        A, B = (np.abs(C + C.T) * (1 - np.eye(len(C))) for C in (A, B))
    a, b = draw_weights(rng, n, m)
    M = scale**2 * rng.normal(size=(n, m)) if rng.random() < 0.3 else None
    outcome = CaseOutcome("matrices", label=f"{n} and {m}, times {scale:.0e}")
    answer = ask(epsilot.gromov_bounds, A, B, a, b, M=M, max_seconds=2.0)
    if outcome.settled(answer, is_due=True) is None:
        return outcome
    linear = np.zeros((n, m)) if M is None else M
    p = np.full(n, 1 / n) if a is None else a / a.sum()
    q = np.full(m, 1 / m) if b is None else b / b.sum()
    return outcome.blame(*coupling_defects(rng, answer.value, A, B, linear, p, q))


# -- checks ----------------------------------------------------------------------------------------


def coupling_defects(
    rng: Rng, result: Any, A: Array, B: Array, M: Array, a: Any, b: Any
) -> Iterator[str]:
    """Yield what is wrong with a coupling, its value, or the lower bound for all couplings."""
    n, m = len(A), len(B)
    a = np.longdouble(np.full(n, 1 / n) if a is None else a)
    b = np.longdouble(np.full(m, 1 / m) if b is None else b)
    b = b * (a.sum() / b.sum())
    mass = a.sum()
    P = np.longdouble(result.plan)
    if not (np.isfinite(P).all() and (P >= 0).all()):
        yield "a coupling has an entry that is negative or not finite"
        return
    missed = np.abs(P.sum(axis=1) - a).sum() + np.abs(P.sum(axis=0) - b).sum()
    if not missed <= ROUND_OFF * mass + TINY:
        yield f"the coupling misses its marginals by {float(missed / mass):.1e} of the mass"
    largest = max(np.abs(A).max(), np.abs(B).max())
    size = mass * (mass * 4 * largest**2 + np.abs(M).max())
    room = ROUND_OFF * size + TINY
    value, lower = np.longdouble(result.value), np.longdouble(result.lower_bound)
    found = objective(A, B, M, P)
    if not abs(found - value) <= room:
        yield f"value {result.value!r} is not that of the coupling, {found!s}"
    if not value >= lower - room:
        yield f"lower bound {lower!s} above the value {value!s}"
    best = least_value(rng, A, B, M, a, b)
    if not lower <= best + room:
        yield f"wrong lower bound {lower!s} above the value of a coupling, {best!s}"


def objective(A: Array, B: Array, M: Array, P: Array) -> np.longdouble:
    """Return the objective, from the difference of every two pairs."""
    i, j = np.nonzero(P)
    w = P[i, j]
    apart = A[np.ix_(i, i)] - B[np.ix_(j, j)]
    return np.longdouble((apart**2 * np.multiply.outer(w, w)).sum() + (M[i, j] * w).sum())


def least_value(rng: Rng, A: Array, B: Array, M: Array, a: Array, b: Array) -> np.longdouble:
    """Return the least objective of some couplings: permutations, or ends of descents."""
    n, m = len(A), len(B)
    best = objective(A, B, M, np.outer(a, b) / a.sum())
    if n == m <= ENUMERATED and np.ptp(a) == np.ptp(b) == 0:
        for order in permutations(range(n)):
            P = np.zeros((n, n), np.longdouble)
            P[np.arange(n), order] = a
            best = min(best, objective(A, B, M, P))
        return best
    scale = float(max(np.abs(A).max(), np.abs(B).max())) or 1.0
    rows, cols = (np.asarray(w / w.sum(), dtype=float) for w in (a, b))
    for _ in range(STARTS):
        P = np.asarray(ot.emd(rows, cols / cols.sum() * rows.sum(), rng.random((n, m))))
        for _ in range(STEPS):
            slope = half_gradient(A / scale, B / scale, P) + M / scale**2 / float(a.sum()) / 2
            P = np.asarray(ot.emd(rows, cols / cols.sum() * rows.sum(), slope.astype(float).copy()))
            exact = feasible(np.longdouble(P) * a.sum(), a, b)
            value = objective(A, B, M, exact)
            if not value < best:
                break
            best = value
    return best


def half_gradient(A: Array, B: Array, P: Array) -> Array:
    """Return half the gradient of the quadratic part at a coupling."""
    r, c = P.sum(axis=1), P.sum(axis=0)
    constant = ((A**2 + A.T**2) @ r / 2)[:, None] + (B**2 + B.T**2) @ c / 2
    return np.asarray(constant - (A @ P @ B.T + A.T @ P @ B))


def feasible(P: Array, a: Array, b: Array) -> Array:
    """Return a coupling with the very marginals."""
    P = P * np.minimum(1, a / np.where(P.sum(axis=1) > 0, P.sum(axis=1), 1))[:, None]
    P = P * np.minimum(1, b / np.where(P.sum(axis=0) > 0, P.sum(axis=0), 1))
    left, right = a - P.sum(axis=1), b - P.sum(axis=0)
    total = left.sum()
    return np.asarray(P + np.outer(left, right) / total if total > 0 else P)


def squares(X: Array) -> Array:
    """Return the squared distances of all pairs."""
    return np.asarray(((X[:, None] - X[None]) ** 2).sum(axis=2))


# -- draws -----------------------------------------------------------------------------------------


def draw_clouds(rng: Rng) -> tuple[Array, Array, str]:
    """Draw two small clouds: unrelated, or one a moved copy of the other."""
    n, m = (int(k) for k in rng.integers(1, 8, 2))
    dx, dy = (int(k) for k in rng.integers(1, 4, 2))
    X = rng.normal(size=(n, dx))
    how = pick(rng, {"unrelated": 5, "copy": 2, "lattice": 1.5, "duplicated": 1, "line": 0.5})
    Y = rng.normal(size=(m, dy))
    if how == "copy":
        turn, _ = np.linalg.qr(rng.normal(size=(dx, dx)))
        Y = X[rng.permutation(n)] @ turn + rng.normal() + rng.choice([0.0, 1e-3]) * X**2
    elif how == "lattice":
        X, Y = np.rint(2 * X), np.rint(2 * Y)
    elif how == "duplicated":
        X = X[rng.integers(0, n, n)]
    elif how == "line":
        X = X[:, :1] * np.ones(dx)
    away = 0.0 if rng.random() < 0.8 else float(10 ** rng.uniform(0, 4))
    scale = 1.0 if rng.random() < 0.6 else float(10 ** rng.uniform(-70, 70))
    words = f"{X.shape} and {Y.shape} {how}, {away:.0e} away, times {scale:.0e}"
    return scale * (X + away), scale * (Y + away), words


def draw_weights(rng: Rng, n: int, m: int) -> tuple[Any, Any]:
    """Draw masses of equal totals; None stands for even ones of total 1."""
    if rng.random() < 0.5:
        return None, None
    scale = 1.0 if rng.random() < 0.7 else min(max(number(rng), 1e-90), 1e90)
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    if rng.random() < 0.3:
        a = np.where(rng.random(n) < 0.4, 0.0, a)
        a = a / a.sum() if a.any() else np.full(n, 1 / n)
    return scale * a, scale * b


def draw_linear(rng: Rng, n: int, m: int, size: float) -> tuple[Any, dict[str, Any]]:
    """Draw a linear cost, and the keywords that fuse it."""
    if rng.random() < 0.7:
        return None, {}
    M = (size or 1.0) * 10 ** rng.uniform(-3, 1) * rng.random((n, m))
    if rng.random() < 0.5:
        return M, {"M": M}
    return M, {"M": M, "alpha": float(rng.uniform(0.05, 0.95))}
