"""Check points with every metric and power against costs by SciPy, and Wasserstein distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import epsilot
from epsilot.metrics import BOOLEAN_METRICS, DISTANCES, POINT_METRICS

from .kinds import SAFETY_SECONDS, draw_masses, judged
from .problems import Array, CaseOutcome, Rng, ask, pick
from .proofs import FuzzKind

LIMITS = {"max_seconds": SAFETY_SECONDS, "on_limit": "ignore"}
#: Relative difference between costs of the library and those of SciPy; its size is the largest.
COST_ERROR = 2e-14


def metrics(rng: Rng) -> CaseOutcome:
    """Draw points and a metric; solve, and check the answer on SciPy's costs."""
    metric = str(rng.choice(POINT_METRICS))
    X, Y, words = draw_points(rng, metric)
    params = draw_params(rng, metric, X.shape[1])
    p = 1.0 if rng.random() < 0.4 else float(rng.choice([0.5, 2.0, 3.0, rng.uniform(0.2, 5)]))
    if metric == "minkowski":  # whose order must be said beside a power
        params.setdefault("p", 2.0)
    if metric in DISTANCES and p >= 1 and rng.random() < 0.3:
        return of_distance(rng, X, Y, metric, params, p, words)
    kind, accuracy = draw_kind(rng), {"rtol": float(10 ** rng.uniform(-9, -0.5))}
    p = 1.0 if kind.finite_prices else p  # powers may exceed the prices, to which values are known
    keywords: dict[str, Any] = {"metric": metric, "p": p, "metric_params": params or None}
    keywords["lazy"] = [None, True, False][int(rng.integers(3))]
    a, b = (draw_masses(rng, len(Z)) for Z in (X, Y))
    a, b = a / a.sum(), b / b.sum()
    outcome = CaseOutcome(metric, label=f"{words}; {keywords} {kind.keywords} {accuracy}")
    answer = ask(
        epsilot.solve_sample, X, Y, a, b, **keywords, **kind.keywords, **accuracy, **LIMITS
    )
    C = costs(X, Y, metric, params) ** p
    if answer.is_refused and not np.isfinite(C).all():
        outcome.ending = "refused"
        return outcome.blame(*answer.defects)
    return judged(outcome, answer, kind, lifted(C), a, b, accuracy, LIMITS)


def of_distance(
    rng: Rng, X: Array, Y: Array, metric: str, params: dict[str, Any], p: float, words: str
) -> CaseOutcome:
    """Check a Wasserstein distance: roots of the bounds of its transport problem."""
    outcome = CaseOutcome(f"wasserstein, {metric}", label=f"{words}; p={p} {params}")
    rtol = float(10 ** rng.uniform(-9, -0.5))
    answer = ask(
        epsilot.wasserstein, X, Y, p=p, metric=metric, metric_params=params or None, rtol=rtol,
        **LIMITS,
    )  # fmt: skip
    distance = outcome.settled(answer, is_due=True)
    if distance is None:
        return outcome
    C = lifted(costs(X, Y, metric, params) ** p)
    a, b = (np.full(len(Z), 1 / len(Z)) for Z in (X, Y))
    transport = ask(lambda: distance.result)
    judged(outcome, transport, FuzzKind(), C, a, b, {"rtol": 1.0}, LIMITS)
    return outcome.blame(*root_defects(distance, p))


def root_defects(distance: Any, p: float) -> Iterator[str]:
    """Yield where the interval of a distance does not hold the roots of its bounds."""
    result = distance.result
    lower, upper = (np.longdouble(x) for x in (distance.lower, distance.upper))
    low = np.longdouble(max(result.lower_bound, 0.0)) ** (1 / np.longdouble(p))
    high = np.longdouble(result.value) ** (1 / np.longdouble(p))
    if float(distance) != distance.upper:
        yield f"the distance {float(distance)!r} is not its upper bound {distance.upper!r}"
    if not (lower <= low * (1 + 1e-17) and upper >= high * (1 - 1e-17)):
        yield f"the interval [{lower!s}, {upper!s}] does not hold the roots {low!s} and {high!s}"
    if not (lower >= low * (1 - 1e-12) - 1e-300 and upper <= high * (1 + 1e-12) + 1e-300):
        yield f"the interval [{lower!s}, {upper!s}] is far from the roots {low!s} and {high!s}"


def costs(X: Array, Y: Array, metric: str, params: dict[str, Any]) -> Array:
    """Return the costs by SciPy."""
    if metric == "cosine":  # by differences of directions, without cancellation
        X, Y = (Z / np.sqrt((Z**2).sum(axis=1, keepdims=True)) for Z in (X, Y))
        return np.asarray(cdist(X, Y, "sqeuclidean") / 2)
    return np.asarray(cdist(X, Y, metric, **params))


def lifted(C: Array) -> Array:
    """Return costs by as much larger as the library's may differ."""
    largest = float(np.max(np.abs(C), where=np.isfinite(C), initial=0.0))
    return np.asarray(C + COST_ERROR * largest)


# -- draws -----------------------------------------------------------------------------------------


def draw_points(rng: Rng, metric: str) -> tuple[Array, Array, str]:
    """Draw points that a metric takes."""
    n, m = (int(k) for k in rng.integers(1, int(rng.choice([4, 12, 30])), 2))
    d = int(rng.integers(2, 6))
    if metric in BOOLEAN_METRICS:
        X, Y = ((rng.random((k, d)) < 0.6).astype(float) for k in (n, m))
        X[:, 0] = Y[:, 0] = 1.0  # two empty sets have no distance
    elif metric == "hamming":
        X, Y = (rng.integers(0, 3, (k, d)).astype(float) for k in (n, m))
    elif metric == "jensenshannon":
        X, Y = (rng.dirichlet(np.ones(d), k) for k in (n, m))
    else:
        X, Y = (rng.normal(size=(k, d)) for k in (n, m))
        if metric in ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski"):
            scale = 1.0 if rng.random() < 0.6 else float(10 ** rng.uniform(-20, 20))
            X, Y = scale * X, scale * Y
            return X, Y, f"{n} x {m} in {d}-d, times {scale:.0e}"
    return X, Y, f"{n} x {m} in {d}-d"


def draw_params(rng: Rng, metric: str, d: int) -> dict[str, Any]:
    """Draw parameters that SciPy takes for a metric, with those that it would take from data."""
    if metric == "minkowski" and rng.random() < 0.8:
        return {"p": float(rng.choice([1.0, 1.5, 3.0, rng.uniform(1, 8)]))}
    if metric == "seuclidean":
        return {"V": rng.uniform(0.1, 3, d)}
    if metric == "mahalanobis":
        root = rng.normal(size=(d, d))
        return {"VI": root @ root.T + np.eye(d)}
    return {}


def draw_kind(rng: Rng) -> FuzzKind:
    """Draw a kind with ordinary prices."""
    name = pick(rng, {"balanced": 6, "kl": 1, "tv": 1, "partial": 1})
    if name == "partial":
        return FuzzKind("partial", mass=float(rng.uniform(0.05, 0.95)))
    if name == "balanced":
        return FuzzKind()
    return FuzzKind(name, *(float(x) for x in 10 ** rng.uniform(-1, 1, 2)))
