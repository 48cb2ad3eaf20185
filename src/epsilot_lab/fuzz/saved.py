"""Save results of every kind, read them again, and read damaged files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import epsilot

from .arcs import draw_arc_weights, draw_cost
from .arcs import draw_kind as draw_arc_kind
from .kinds import SAFETY_SECONDS, draw_dense, draw_kind
from .prices import draw_priced_kind
from .problems import Array, CaseOutcome, Rng, ask, pick
from .proofs import FuzzKind
from .resume import spoil

LIMITS = {"max_seconds": SAFETY_SECONDS, "max_iter": 200, "on_limit": "ignore"}
#: Fields that are read as they were written.
FIELDS = (
    "value", "value_linear", "lower_bound", "gap", "converged", "status", "method", "reg", "seed",
    "n_iter", "marginal_error", "target", "mass_price", "problem_hash", "choice",
)  # fmt: skip


def saved(rng: Rng) -> CaseOutcome:
    """Draw a problem, save its result, and read it with its problem, without, or damaged."""
    M, a, b, kind, drawn = draw_problem(rng)
    keywords = kind.keywords
    outcome = CaseOutcome(kind.label, label=f"{drawn}; {keywords}")
    answer = ask(epsilot.solve, M, a, b, **keywords, **LIMITS)
    if answer.value is None:
        outcome.ending = "refused" if answer.is_refused else "raised"
        return outcome.blame(*(answer.defects if not answer.is_refused else []))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        answer.value.save(path)
        way = pick(rng, {"alone": 3, "with its problem": 4, "another problem": 2, "damaged": 4})
        outcome.ending = way
        given = () if way in ("alone", "damaged") else (M, a, b)
        if way == "another problem":
            given = (M, a, b * (1 + 1e-9 * (np.arange(b.size) == 0)))
        if way == "damaged":
            outcome.label += "; " + spoil(rng, path)
        words = {name: x for name, x in keywords.items() if name != "reg" and given}
        read = ask(epsilot.Result.load, path, *given, **words)
    outcome.blame(*read.defects)
    if way == "damaged":
        return outcome
    if way == "another problem":
        is_other = b.size > 1 and given[2][0] != b[0] and b[0] > 1e-3 * b.sum()
        if is_other and read.value is not None and kind.name != "balanced":
            outcome.blame("the result of another problem was read as that of this one")
        return outcome
    if read.value is None:
        return outcome.blame(f"a saved result was refused: {read.error}")
    return outcome.blame(*differences(answer.value, read.value, a, b, way))


def differences(first: Any, second: Any, a: Array, b: Array, way: str) -> Iterator[str]:
    """Yield where a result that was read differs from the one that was saved."""
    for name in FIELDS:
        was, now = getattr(first, name), getattr(second, name)
        if was != now and not (was != was and now != now):
            yield f"{name} was {was!r} and is read as {now!r}"
    pairs = list(zip(first.potentials, second.potentials, strict=True))
    if way != "alone" or can_show(second):
        pairs.append((first.plan, second.plan))
    if any(x.tobytes() != y.tobytes() for x, y in pairs):
        yield "the plan or the potentials differ in their bits"


def can_show(result: Any) -> bool:
    """Tell whether a plan needs no costs: those of potentials do."""
    return ask(lambda: result.plan).error is None


def draw_problem(rng: Rng) -> tuple[Any, Array, Array, FuzzKind, str]:
    """Draw a dense problem of any kind, one with prices per point, or one on arcs."""
    how = pick(rng, {"any": 4, "prices": 2, "arcs": 2})
    if how == "arcs":
        cost = draw_cost(rng, *(int(k) for k in rng.integers(1, 9, 2)))
        a, b, words = draw_arc_weights(rng, cost.matrix)
        kind = draw_arc_kind(rng, cost.matrix, a, b)
        return cost.given, a, b, kind, f"{cost.words}, {words}"
    C, a, b, words = draw_dense(rng)
    make = draw_kind if how == "any" else draw_priced_kind
    return C, a, b, make(rng, C, a, b), words
