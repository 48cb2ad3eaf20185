"""Check barycentres of histograms, images and clouds against their plans and potentials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import epsilot

from .kinds import INSIDE, ORDINARY, REACHABLE, at_scale, at_total, draw_masses, is_near
from .problems import COSTS, METRICS, Array, CaseOutcome, Rng, ask, number, pick
from .proofs import ROUND_OFF, TINY, FuzzKind, allowed_gap

LIMITS = {"max_seconds": 3.0, "on_limit": "ignore"}
METHODS = ("anderson", "ibp", "lbfgs", "pdasmd", "exact")


def barycenters(rng: Rng) -> CaseOutcome:
    """Draw a barycentre problem of one of three sorts, solve it, and check it."""
    return pick_sort(rng)(rng)


def pick_sort(rng: Rng) -> Any:
    """Draw a sort of barycentre."""
    return {"matrix": of_matrix, "grid": of_grid, "sample": of_sample}[
        pick(rng, {"matrix": 5, "grid": 3, "sample": 2})
    ]


def of_matrix(rng: Rng) -> CaseOutcome:
    """Check a barycentre of histograms on stored costs."""
    count, n, m = (int(rng.integers(1, k)) for k in (5, 9, 9))
    is_shared = rng.random() < 0.6
    sizes = [n if is_shared else int(rng.integers(1, 9)) for _ in range(count)]
    scale = 1.0 if rng.random() < 0.5 else number(rng)
    costs = [_cost(rng, k, m, scale) for k in ([n] if is_shared else sizes)]
    A = histograms(rng, sizes)
    M: Any = costs[0] if is_shared else costs
    every = costs * count if is_shared else costs
    label = f"{count} histograms of {sizes} to {m}, costs {scale:.0e}, mass {A[0].sum():.0e}"
    return _solved(rng, "barycenter", epsilot.barycenter, (A, M), every, A, label)


def _cost(rng: Rng, n: int, m: int, scale: float) -> Array:
    """Draw a cost of any family, of one scale."""
    C = COSTS[str(rng.choice(list(COSTS)))](rng, n, m)
    C = C - np.median(C) if rng.random() < 0.2 else C
    scaled = np.longdouble(C) * np.longdouble(scale)
    return np.asarray(np.clip(scaled, -1e307, 1e307), dtype=np.float64)


def histograms(rng: Rng, sizes: Sequence[int]) -> list[Array]:
    """Draw histograms of one total."""
    first = at_scale(rng, draw_masses(rng, sizes[0]))[0]
    return [first, *(at_total(draw_masses(rng, k), first) for k in sizes[1:])]


def of_grid(rng: Rng) -> CaseOutcome:
    """Check a barycentre of images."""
    d, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape = tuple(int(k) for k in rng.integers(1, {1: 12, 2: 6, 3: 4}[d], d))
    metric = str(rng.choice(["cityblock", "sqeuclidean"]))
    spacing = float(10 ** rng.uniform(-100, 100)) if rng.random() < 0.2 else rng.uniform(0.5, 2)
    places = np.indices(shape).reshape(d, -1).T * np.longdouble(spacing)
    cost = METRICS[metric](places, places)
    A = histograms(rng, [math.prod(shape)] * count)
    images = [x.reshape(shape) for x in A]

    def barycenter_grid(*args: Any, **keywords: Any) -> Any:
        return epsilot.barycenter_grid(*args, metric=metric, spacing=spacing, **keywords)

    label = f"{count} images of {shape}, {metric}, spacing {spacing:.0e}, mass {A[0].sum():.0e}"
    every = [cost] * count
    return _solved(rng, "barycenter_grid", barycenter_grid, (images,), every, A, label)


def _solved(
    rng: Rng, kind: str, call: Any, args: Any, costs: list[Array], A: list[Array], label: str
) -> CaseOutcome:
    """Solve a problem with drawn weights and targets, and check it."""
    weights = draw_shares(rng, len(A))
    unit = float(max(np.abs(C).max() for C in costs)) or 1.0
    accuracy = draw_accuracy(rng, unit, float(A[0].sum()))
    method = "auto" if rng.random() < 0.5 else str(rng.choice(METHODS))
    limits: dict[str, Any] = dict(LIMITS)
    if method not in ("auto", "exact"):
        limits["max_iter"] = int(10 ** rng.uniform(0, 2.5))
    outcome = CaseOutcome(kind, method, label=f"{label}, weights {weights}; {accuracy}, {limits}")
    answer = ask(call, *args, weights, **accuracy, method=method, **limits)
    result = outcome.settled(answer, _is_due(costs, A, weights, accuracy, method))
    if result is None:
        return outcome
    exact = [np.longdouble(C) for C in costs]
    kind_of = FuzzKind(reg=accuracy.get("reg"))
    shares = np.full(len(A), 1.0) if weights is None else weights
    outcome.blame(
        *family_defects(result, kind_of, exact, A, shares, is_stored=kind == "barycenter")
    )
    gap, lower = np.longdouble(result.gap), np.longdouble(result.lower_bound)
    mass = np.longdouble(A[0]).sum()
    size = max(np.longdouble(unit), np.longdouble(accuracy.get("reg", 0))) * mass
    allowed = allowed_gap(accuracy, lower, size, is_entropic="reg" in accuracy)
    if result.converged and not gap <= allowed * (1 + 1e-9) + ROUND_OFF * size + TINY:
        outcome.blame(f"converged with gap {result.gap!r} above the target {allowed!s}")
    return outcome


def draw_shares(rng: Rng, count: int) -> Any:
    """Draw the weights of histograms."""
    how = pick(rng, {"none": 3, "random": 4, "zeros": 1, "decades": 1})
    if how == "none":
        return None
    w = rng.random(count) + 0.01
    if how == "zeros":
        w = w * (rng.random(count) < 0.6)
        w[0] = 1.0
    return w if how != "decades" else np.array([number(rng) for _ in w])


def draw_accuracy(rng: Rng, unit: float, mass: float) -> dict[str, float]:
    """Draw what to reach."""
    how = pick(rng, {"default": 3, "rtol": 3, "eps": 2, "reg": 3})
    with np.errstate(over="ignore"):
        size = float(np.clip(unit * mass, 1e-320, 1e308))
    if how == "default":
        return {}
    if how == "rtol":
        return {"rtol": float(10 ** rng.uniform(-8, 0)) if rng.random() < 0.8 else number(rng)}
    if how == "eps":
        return {"eps": number(rng, size)}
    reg = {"reg": number(rng, unit)}
    return reg | {"tol": number(rng, size)} if rng.random() < 0.5 else reg


def _is_due(
    costs: list[Array], A: list[Array], weights: Any, accuracy: dict[str, float], method: str
) -> bool:
    """Tell whether every number is in proportion, so that a refusal is a defect."""
    unit = max(np.abs(np.longdouble(C)).max() for C in costs)
    mass = np.longdouble(A[0]).sum()
    if not all(is_near(x, INSIDE) for x in (mass, unit or 1)):
        return False
    if weights is not None and not (weights.max() < 1e7 * weights.min() and weights.max() > 1e-9):
        return False
    if "reg" in accuracy and (
        method in ("exact",) or not is_near(accuracy["reg"] / (unit or 1), ORDINARY)
    ):
        return False
    size = max(unit, np.longdouble(accuracy.get("reg", 0))) * mass
    wanted = [accuracy[name] for name in ("eps", "tol") if name in accuracy]
    return all(x > REACHABLE * size for x in wanted) and 1e-9 < accuracy.get("rtol", 1) < 1e9


def of_sample(rng: Rng) -> CaseOutcome:
    """Check the cost of a barycentre whose points are free."""
    d, count, n_points = (int(rng.integers(1, k)) for k in (4, 4, 8))
    scale = 1.0 if rng.random() < 0.7 else float(10 ** rng.uniform(-140, 140))
    clouds = [scale * rng.normal(size=(int(rng.integers(1, 9)), d)) for _ in range(count)]
    masses = [draw_masses(rng, len(X)) for X in clouds]
    weights = draw_shares(rng, count)
    label = f"{count} clouds to {n_points} points in {d}-d of size {scale:.0e}, {weights}"
    outcome = CaseOutcome("barycenter_sample", label=label)
    keywords = {"rtol": float(10 ** rng.uniform(-8, -1)), "max_iter": int(rng.integers(1, 20))}
    answer = ask(
        epsilot.barycenter_sample, clouds, n_points, masses=masses, weights=weights, **keywords
    )
    is_tame = weights is None or weights.max() < 1e7 * max(weights.min(), 1e-300)
    result = outcome.settled(answer, is_tame and is_near(scale, (1e-60, 1e60)))
    if result is None:
        return outcome
    Y = np.longdouble(result.points)
    costs = [METRICS["sqeuclidean"](np.longdouble(X), Y) for X in clouds]
    A = [np.longdouble(w) / np.longdouble(w).sum() for w in masses]
    shares = np.full(count, 1.0) if weights is None else weights
    target = np.longdouble(result.barycenter)
    return outcome.blame(
        *family_defects(result, FuzzKind(), costs, A, shares, is_stored=False, target=target)
    )


# -- the check ---------------------------------------------------------------------------------


def family_defects(
    result: Any,
    kind: FuzzKind,
    costs: Sequence[Array],
    A: Sequence[Array],
    weights: Any,
    *,
    is_stored: bool,
    target: Array | None = None,
) -> Iterator[str]:
    """Yield what plans to a common histogram and potentials of mean 0 do not prove.

    With a ``target`` the histogram is given, and potentials need not have the mean 0.
    """
    w = np.longdouble(weights) / np.longdouble(weights).sum()
    b = np.longdouble(result.barycenter).ravel()
    mass = np.longdouble(A[0]).sum()
    if not (np.isfinite(b).all() and (b >= 0).all()):
        yield "the barycentre has an entry that is negative or not finite"
        return
    above, below, size = np.longdouble(0), np.longdouble(0), np.longdouble(0)
    mean = np.zeros_like(b)
    for k, (C, share) in enumerate(zip(costs, w, strict=True)):
        a = np.longdouble(A[k])
        a = a * (mass / a.sum())
        X = np.longdouble(result.plans[k].toarray())
        f, g = (np.longdouble(x) for x in result.potentials[k])
        largest = np.abs(C).max()
        f = f if is_stored else f - 2e-15 * largest
        yield from (f"plan {k}: {text}" for text in kind.plan_defects(a, b, X))
        if share > 0:
            yield from (f"member {k}: {text}" for text in kind.potential_defects(C, f, g))
        price = kind.plan_value(C, a, b, X)
        proved = kind.dual_value(C, a, np.zeros_like(b) if target is None else target, f, g)
        above, below = above + share * price.value, below + share * proved.value
        size = size + share * (price.size + largest * mass + (proved.size if kind.reg else 0))
        mean = mean + share * g
    if target is None:
        below = below + mass * mean.min()
    room = ROUND_OFF * size + TINY
    value, lower = np.longdouble(result.value), np.longdouble(result.lower_bound)
    if not abs(value - above) <= room:
        yield f"value {value!s} is not that of the plans, {above!s}"
    if not lower <= below + room:
        yield f"lower bound {lower!s} is above what the potentials prove, {below!s}"
    if not lower <= value + room:
        yield f"lower bound {lower!s} above the value {value!s}"
