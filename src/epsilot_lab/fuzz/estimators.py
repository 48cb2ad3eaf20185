"""Check the estimators: their plans, and the values they return."""

from __future__ import annotations

from typing import Any

import numpy as np

import epsilot

from .kinds import INSIDE, ORDINARY, REACHABLE, is_near
from .problems import METRICS, Array, CaseOutcome, Rng, ask, number, pick
from .proofs import TINY, BoundClaim, FuzzKind, claim_defects


def estimators(rng: Rng) -> CaseOutcome:
    """Fit an estimator to small data of any scale, and check its plan and its map."""
    return (adapter if rng.random() < 0.6 else colors)(rng)


def draw_accuracy(rng: Rng, unit: float) -> dict[str, float]:
    """Draw what to reach."""
    how = pick(rng, {"default": 4, "rtol": 2, "eps": 1, "reg": 2})
    if how == "default":
        return {}
    if how == "rtol":
        return {"rtol": float(10 ** rng.uniform(-8, 0))}
    return {how: number(rng, unit)}


def adapter(rng: Rng) -> CaseOutcome:
    """Check a DomainAdapter."""
    d = int(rng.integers(1, 4))
    n, m = (int(k) for k in rng.integers(2, 15, 2))  # fewer than two samples are refused
    scale = 1.0 if rng.random() < 0.6 else float(10 ** rng.uniform(-140, 140))
    X, Y = (scale * rng.normal(size=(k, d)) for k in (n, m))
    metric = pick(rng, {"sqeuclidean": 3, "euclidean": 1, "cityblock": 1})
    C = METRICS[metric](np.longdouble(X), np.longdouble(Y))
    accuracy = draw_accuracy(rng, float(C.max()))
    label = f"{n} x {m} in {d}-d, {metric}, size {scale:.0e}; {accuracy}"
    outcome = CaseOutcome("DomainAdapter", label=label)

    def fit() -> Any:
        keywords = {"metric": metric, "max_seconds": 3.0, "new_points": "source", **accuracy}
        return epsilot.DomainAdapter(**keywords).fit(X, Xt=Y)

    answer = ask(fit)
    if not answered(outcome, answer, float(C.max()), accuracy):
        return outcome
    fitted = answer.value
    a, b = np.full(n, np.longdouble(1) / n), np.full(m, np.longdouble(1) / m)
    outcome.blame(*plan_defects(fitted.result_, C, a, b, accuracy))
    plan = np.longdouble(fitted.coupling_)
    moved = plan @ np.longdouble(Y) / plan.sum(axis=1, keepdims=True)
    error = np.abs(moved - fitted.transported_).max()
    if not error <= 1e-11 * np.abs(Y).max() + TINY:
        outcome.blame(f"transported_ is not the mean of the destinations, by {error!s}")
    new = scale * rng.normal(size=(5, d))
    sent = ask(fitted.transform, new)
    outcome.blame(*sent.defects)
    if sent.value is not None and not np.isfinite(sent.value).all():
        outcome.blame("transform returns numbers that are not finite")
    return outcome


def colors(rng: Rng) -> CaseOutcome:
    """Check a ColorTransfer."""
    shapes = [tuple(int(k) for k in rng.integers(1, 12, 2)) for _ in range(2)]
    kind = pick(rng, {"uint8": 3, "float": 3, "constant": 1, "tiny": 1})
    images = [picture(rng, shape, kind) for shape in shapes]
    keywords = {
        "n_colors": int(rng.integers(1, 20)),
        "palette": str(rng.choice(["cluster", "sample"])),
        "smoothing": float(rng.choice([0.0, 0.01, 1.0])),
        "seed": int(rng.integers(100)),
    }
    accuracy = draw_accuracy(rng, 1.0)
    outcome = CaseOutcome("ColorTransfer", label=f"{kind} {shapes}; {keywords}, {accuracy}")

    def fit() -> Any:
        return epsilot.ColorTransfer(**keywords, **accuracy, max_seconds=3.0).fit(*images)

    answer = ask(fit)
    if not answered(outcome, answer, 1.0, accuracy):
        return outcome
    fitted = answer.value
    here, there = fitted.source_palette_, fitted.reference_palette_
    C = METRICS["sqeuclidean"](np.longdouble(here.colors), np.longdouble(there.colors))
    a, b = (np.longdouble(x.weights) for x in (here, there))
    outcome.blame(*plan_defects(fitted.result_, C, a, b * (a.sum() / b.sum()), accuracy))
    sent = ask(fitted.transform, images[0])
    outcome.blame(*sent.defects)
    if sent.value is not None:
        out = sent.value
        if out.shape[:2] != images[0].shape[:2] or out.dtype != images[0].dtype:
            outcome.blame(f"a picture {images[0].shape} became {out.shape} of {out.dtype}")
        elif not (np.isfinite(out).all() and out.min() >= 0 and out.max() <= 255):
            outcome.blame("a picture has colours outside their range")
    return outcome


def picture(rng: Rng, shape: tuple[int, ...], kind: str) -> Array:
    """Draw a picture with three channels."""
    if kind == "uint8":
        return rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    if kind == "constant":
        return np.full((*shape, 3), rng.random())
    return rng.random((*shape, 3)) * (1.0 if kind == "float" else min(number(rng), 1.0))


def answered(outcome: CaseOutcome, answer: Any, unit: float, accuracy: dict[str, float]) -> bool:
    """Tell whether there is an answer; a refusal that is not due is a defect."""
    is_due = is_near(unit, INSIDE) and is_near(accuracy.get("reg", unit) / unit, ORDINARY)
    is_due &= accuracy.get("eps", np.inf) > REACHABLE * unit
    return outcome.settled(answer, is_due) is not None


def plan_defects(
    result: Any, C: Array, a: Array, b: Array, accuracy: dict[str, float]
) -> list[str]:
    """Say which bounds of a fitted plan are not proved; its costs are computed by the library."""
    f, g = result.potentials
    claim = BoundClaim(
        result.value, result.lower_bound, result.plan, (np.longdouble(f) - 4e-15 * C.max(), g)
    )
    return list(claim_defects(FuzzKind(reg=accuracy.get("reg")), C, a, b, claim))
