"""Check the losses of PyTorch and JAX: values are true, gradients are ε-subgradients.

The gradient in a cost must be a plan whose price is the value; gradients in the weights must be
potentials that prove the value less its gap; the gradient in points must bound the cost of moved
points. All of it is proved in extended precision.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .batches import costs_of, weights_of
from .kinds import INSIDE, ORDINARY, REACHABLE, is_near
from .problems import METRICS, Array, CaseOutcome, Rng, ask, number, pick
from .proofs import ROUND_OFF, TINY, BoundClaim, FuzzKind, bracket, claim_defects, slack

LARGEST = 8
#: Problems of a case, without and with an entropy.
MANY, FEW = 60, 4


class LossValue(NamedTuple):
    """Values, gaps and potentials of stacked problems, and the gradients of the values' sum."""

    value: Array
    gap: Array
    f: Array
    g: Array
    slopes: tuple[Any, ...]


def by_torch(name: str, parts: tuple[Any, ...], keywords: dict[str, Any]) -> LossValue:
    """Return what PyTorch finds."""
    import torch

    import epsilot.torch

    tensors = [None if x is None else torch.tensor(x, requires_grad=True) for x in parts]
    value, info = getattr(epsilot.torch, name)(*tensors, **keywords, return_info=True)
    value.sum().backward()
    slopes = tuple(None if t is None else t.grad.numpy() for t in tensors)
    f, g = (x.numpy() for x in info.potentials)
    return LossValue(value.detach().numpy(), info.gap.numpy(), f, g, slopes)


def by_jax(name: str, parts: tuple[Any, ...], keywords: dict[str, Any]) -> LossValue:
    """Return what JAX finds, in float64."""
    import jax

    import epsilot.jax

    jax.config.update("jax_enable_x64", True)
    given = [k for k, x in enumerate(parts) if x is not None]

    def total(*arrays: Any) -> Any:
        every: list[Any] = [None] * len(parts)
        for k, x in zip(given, arrays, strict=True):
            every[k] = x
        value, info = getattr(epsilot.jax, name)(*every, **keywords, return_info=True)
        return value.sum(), (value, info)

    arrays = [jax.numpy.asarray(parts[k]) for k in given]
    wanted = tuple(range(len(given)))
    logging.getLogger("jax").setLevel(logging.CRITICAL)  # it logs what callbacks raise
    try:
        (_, (value, info)), found = jax.value_and_grad(total, wanted, has_aux=True)(*arrays)
    except jax.errors.JaxRuntimeError as error:  # so JAX wraps what its callbacks raise
        _, is_ours, sentence = str(error).partition("InvalidProblem: ")
        if is_ours:
            raise epsilot.InvalidProblem(sentence.splitlines()[0]) from None
        raise
    slopes: list[Any] = [None] * len(parts)
    for k, slope in zip(given, found, strict=True):
        slopes[k] = np.asarray(slope)
    f, g = (np.asarray(x) for x in info.potentials)
    return LossValue(np.asarray(value), np.asarray(info.gap), f, g, tuple(slopes))


FRAMEWORKS = {"torch": by_torch, "jax": by_jax}


def losses(rng: Rng) -> CaseOutcome:
    """Draw stacked problems, differentiate their costs, and check values and gradients."""
    framework = pick(rng, {"torch": 6, "jax": 2})
    return (of_matrices if rng.random() < 0.6 else of_clouds)(rng, framework)


def draw_keywords(rng: Rng, unit: float) -> dict[str, float]:
    """Draw what to reach, and perhaps an entropy."""
    if rng.random() < 0.3:
        reg = {"reg": number(rng, unit)}
        return reg | {"tol": number(rng, unit)} if rng.random() < 0.3 else reg
    how = pick(rng, {"default": 4, "rtol": 2, "eps": 1})
    if how == "default":
        return {}
    return (
        {"rtol": float(10 ** rng.uniform(-9, 0))} if how == "rtol" else {"eps": number(rng, unit)}
    )


def of_matrices(rng: Rng, framework: str) -> CaseOutcome:
    """Check the cost of given matrices."""
    n, m = (int(k) for k in rng.integers(1, LARGEST, 2))
    C = costs_of(rng, n, m)
    unit = float(np.abs(C).max()) or 1.0
    keywords = draw_keywords(rng, unit)
    count = int(rng.integers(1, FEW if "reg" in keywords else MANY))
    M = np.stack([C * rng.uniform(0.5, 1, C.shape) for _ in range(count)])
    a, b = draw_weights(rng, count, n, m)
    label = f"{count} of {n} x {m}, costs of {unit:.0e}; {keywords}"
    outcome = CaseOutcome(f"{framework} transport_cost_matrix", label=label, problems=count)
    answer = ask(FRAMEWORKS[framework], "transport_cost_matrix", (M, a, b), keywords)
    if not _answered(outcome, answer, unit, keywords):
        return outcome
    a, b = spread(a, n), spread(b, m)
    found: LossValue = answer.value
    C, a, b = _extended(M, a, b)
    claim = BoundClaim(found.value, found.value - found.gap, found.slopes[0], None)
    outcome.blame(*claim_defects(FuzzKind(reg=keywords.get("reg")), C, a, b, claim))
    return outcome.blame(*weight_defects(found, C, a, b, keywords, 1))


def of_clouds(rng: Rng, framework: str) -> CaseOutcome:
    """Check the cost of points."""
    n, m = (int(k) for k in rng.integers(1, LARGEST, 2))
    d = int(rng.integers(1, 4))
    metric = pick(rng, {"sqeuclidean": 4, "euclidean": 2, "cityblock": 2})
    scale = 1.0 if rng.random() < 0.7 else float(10 ** rng.uniform(-60, 60))
    keywords = draw_keywords(rng, scale**2 if metric == "sqeuclidean" else scale)
    count = int(rng.integers(1, FEW if "reg" in keywords else MANY))
    x, y = (scale * rng.normal(size=(count, k, d)) for k in (n, m))
    a, b = draw_weights(rng, count, n, m)
    label = f"{count} of {n} x {m} points in {d}-d, {metric}, size {scale:.0e}; {keywords}"
    outcome = CaseOutcome(f"{framework} transport_cost", label=label, problems=count)
    words = {**keywords, "metric": metric}
    answer = ask(FRAMEWORKS[framework], "transport_cost", (x, y, a, b), words)
    C = np.stack(
        [METRICS[metric](np.longdouble(p), np.longdouble(q)) for p, q in zip(x, y, strict=True)]
    )
    if not _answered(outcome, answer, float(C.max()), keywords):
        return outcome
    a, b = spread(a, n), spread(b, m)
    found: LossValue = answer.value
    C, a, b = _extended(C, a, b)
    outcome.blame(*weight_defects(found, C, a, b, keywords, 2))
    if metric == "sqeuclidean":
        outcome.blame(*point_defects(rng, found, x, y, a, b, keywords.get("reg")))
    return outcome


def _answered(outcome: CaseOutcome, answer: Any, unit: float, keywords: dict[str, float]) -> bool:
    """Tell whether there is an answer; a refusal that is not due is a defect."""
    size = max(unit or 1.0, keywords.get("reg", 0.0))
    wanted = [keywords[name] for name in ("eps", "tol") if name in keywords]
    is_due = is_near(unit or 1.0, INSIDE) and all(x > REACHABLE * size for x in wanted)
    is_due &= is_near(keywords.get("reg", size) / (unit or 1.0), ORDINARY)
    return outcome.settled(answer, is_due) is not None


def draw_weights(rng: Rng, count: int, n: int, m: int) -> tuple[Any, Any]:
    """Draw weights of total one for each problem, or none."""
    if rng.random() < 0.3:
        return None, None
    pairs = [weights_of(rng, n, m, 1.0) for _ in range(count)]
    return tuple(np.stack([pair[side] for pair in pairs]) for side in (0, 1))


def spread(w: Any, n: int) -> Array:
    """Return weights, uniform ones if there are none."""
    return np.full((1, n), 1.0 / n) if w is None else w


def _extended(C: Array, a: Array, b: Array) -> tuple[Array, ...]:
    """Return costs and weights of equal totals, in extended precision."""
    C, a, b = (np.longdouble(x) for x in (C, a, b))
    return C, a, b * (a.sum(axis=-1) / b.sum(axis=-1))[:, None]


def weight_defects(
    found: LossValue, C: Array, a: Array, b: Array, keywords: dict[str, float], first: int
) -> Iterator[str]:
    """Yield where potentials, or gradients in the weights, do not prove the value less its gap."""
    reg = keywords.get("reg")
    kind = FuzzKind(reg=reg)
    value, gap = np.longdouble(found.value), np.longdouble(found.gap)
    unit = np.abs(C).max(axis=(-1, -2)) * a.sum(axis=-1) + np.abs(value)
    room = 10 * ROUND_OFF * unit + TINY
    if not (gap >= -room).all():
        yield f"the negative gap {gap.min()!s}"
    pairs = {"potentials": (found.f, found.g)}
    if found.slopes[first] is not None:
        pairs["gradients in the weights"] = found.slopes[first], found.slopes[first + 1]
    for name, (f, g) in pairs.items():
        f, g = np.longdouble(f), np.longdouble(g)
        if reg is None:  # with the best constant any potentials are feasible
            f = f + slack(C, f, g).min(axis=(-1, -2))[:, None]
        else:  # where there is no mass a slope is infinite, and given as 0
            f, g = np.where(a > 0, f, -np.inf), np.where(b > 0, g, -np.inf)
        proved = kind.dual_value(C, a, b, f, g)
        more = room if reg is None else room + 10 * ROUND_OFF * proved.size
        if not (proved.value >= value - gap - more).all():
            worst = (value - gap - proved.value).max()
            yield f"{name} prove less than the value and its gap, by {worst!s}"
        if not (value >= proved.value - more).all():
            yield f"wrong upper bound: {name} prove {(proved.value - value).max()!s} more"


def point_defects(
    rng: Rng, found: LossValue, x: Array, y: Array, a: Array, b: Array, reg: float | None
) -> Iterator[str]:
    """Yield where moved points cost more than a gradient allows.

    With a plan X, cost(x + h) <= value + <slope, h> + Σ a_i |h_i|², and likewise in y.
    """
    for k in rng.choice(len(x), min(len(x), 3), replace=False):
        p, q = (w[k if len(w) > 1 else 0] for w in (a, b))
        size = np.abs(x[k]).max() + np.abs(y[k]).max()
        h = size * 10 ** rng.uniform(-4, 0) * rng.normal(size=x[k].shape)
        z = size * 10 ** rng.uniform(-4, 0) * rng.normal(size=y[k].shape)
        moves = (
            ("x", found.slopes[0][k], h, p, (x[k] + h, y[k])),
            ("y", found.slopes[1][k], z, q, (x[k], y[k] + z)),
        )
        for name, slope, step, weights, (X, Y) in moves:
            cost = np.asarray(METRICS["sqeuclidean"](np.longdouble(X), np.longdouble(Y)))
            least, _ = bracket(FuzzKind(reg=reg), cost, p, q)
            slope, step = np.longdouble(slope), np.longdouble(step)
            bound = np.longdouble(found.value[k]) + (slope * step).sum()
            bound += (weights[:, None] * step**2).sum()
            room = 1e-11 * (cost.max() + abs(bound)) + TINY
            if reg is not None:  # the sum of the plan is its mass, up to round-off of the entropy
                room += 1e-11 * np.longdouble(reg) * (1 + np.log(np.longdouble(cost.size)))
            if not least <= bound + room:
                yield f"the gradient in {name} allows {bound!s}, moved points cost {least!s}"
