"""Check batches of small problems, in this process and on a Dask cluster."""

from __future__ import annotations

import atexit
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import epsilot

from .kinds import at_scale, at_total, draw_masses
from .problems import (
    COSTS,
    METRICS,
    Array,
    CallRecord,
    CaseOutcome,
    Rng,
    ask,
    number,
    pick,
    sentence_defects,
)
from .proofs import ROUND_OFF, TINY, BoundClaim, FuzzKind, allowed_gap, bit_defects, claim_defects

# -- batches -----------------------------------------------------------------------------------

#: Problems of a batch, at most, and their rows and columns.
MOST, LARGEST = 800, 12
LIMITS = {"plans": True, "potentials": True, "on_error": "collect"}
#: Costs and masses so far from the ends of float64 that a refusal is a defect.
INSIDE = 1e-140, 1e140


class Many(NamedTuple):
    """A call, and the problems it means, in extended precision."""

    call: Any
    args: tuple[Any, ...]
    problems: list[tuple[Array, Array, Array]]  # cost and weights as given
    words: str
    is_computed: bool = False  # whether the library computes the costs


def batches(rng: Rng) -> CaseOutcome:
    """Draw many problems, solve them in one call, and check each."""
    return checked(rng, DRAWS[pick(rng, {"batch": 4, "ragged": 2, "clouds": 3, "pairwise": 3})])


def checked(rng: Rng, draw: Any, **more: Any) -> CaseOutcome:
    """Solve what a function draws in one call and check every problem."""
    many: Many = draw(rng)
    accuracy = draw_accuracy(rng)
    outcome = CaseOutcome(many.call.__name__, label=f"{many.words}; {accuracy}")
    outcome.problems = len(many.problems)
    answer = ask(many.call, *many.args, **accuracy, **LIMITS, **more)
    if outcome.settled(answer, all(is_due(*p, accuracy) for p in many.problems)) is None:
        return outcome
    outcome.events["refused problems"] = len(answer.value.errors)
    outcome.blame(*batch_defects(answer, many, accuracy))
    if rng.random() < 0.15:
        outcome.blame(*again(rng, many, accuracy, answer.value))
    return outcome


def again(rng: Rng, many: Many, accuracy: dict[str, float], first: Any) -> list[str]:
    """Solve on another number of threads and say whether the bits differ."""
    other = ask(many.call, *many.args, **accuracy, **LIMITS, n_threads=int(rng.integers(1, 4)))
    if other.value is None:
        return [f"a second call raised {other.error}"]
    names = ("value", "lower_bound", "codes")
    same = all(getattr(first, x).tobytes() == getattr(other.value, x).tobytes() for x in names)
    same &= first.plans.flow.tobytes() == other.value.plans.flow.tobytes()
    return [] if same else ["a second call differs in its bits"]


def batch_defects(answer: CallRecord, many: Many, accuracy: dict[str, float]) -> Iterator[str]:
    """Yield what is wrong with a batch: problems of one shape are checked together."""
    batch = answer.value
    if len(batch) != len(many.problems):
        yield f"{len(batch)} answers to {len(many.problems)} problems"
        return
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for k, (C, a, b) in enumerate(many.problems):
        if k in batch.errors:
            yield from sentence_defects(batch.errors[k])
            if is_due(C, a, b, accuracy):
                yield f"refused a valid problem: {batch.errors[k]}"
        elif not batch.is_complete and np.isnan(batch.value[k]):
            continue
        else:
            groups[C.shape].append(k)
    for members in groups.values():
        yield from group_defects(batch, members, many, accuracy)


def group_defects(
    batch: Any, members: Sequence[int], many: Many, accuracy: dict[str, float]
) -> Iterator[str]:
    """Yield what is wrong with problems of one shape."""
    C, a, b = (np.stack([many.problems[k][i] for k in members]) for i in range(3))
    C, a, b = (np.longdouble(x) for x in (C, a, b))
    b = b * (a.sum(axis=-1) / b.sum(axis=-1))[:, None]
    plans = np.stack([batch.plans[k].toarray() for k in members])
    pairs = [batch.potentials[k] for k in members]
    f, g = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
    value, lower = batch.value[members], batch.lower_bound[members]
    if many.is_computed:  # the library's costs may differ from ours in the last place
        largest = np.abs(C).max(axis=(-1, -2))
        f = f - np.asarray(2e-15 * largest, dtype=float)[:, None]
    yield from claim_defects(FuzzKind(), C, a, b, BoundClaim(value, lower, plans, (f, g)))
    gap = np.longdouble(value) - np.longdouble(lower)
    unit = np.abs(C).max(axis=(-1, -2)) * a.sum(axis=-1)
    allowed = allowed_gap(accuracy, np.longdouble(lower), unit, is_entropic=False)
    is_done = batch.converged[members]
    late = is_done & ~(gap <= allowed * (1 + 1e-9) + ROUND_OFF * unit + TINY)
    if late.any():
        yield f"converged with gap {gap[late][0]!s} above the target"
    if "eps" not in accuracy and not is_done.all():
        inside = [is_inside(*many.problems[k]) for k in members]
        if (~is_done & inside).any():
            yield f"{int((~is_done & inside).sum())} small problems are not certified"


def is_due(C: Array, a: Array, b: Array, accuracy: dict[str, float]) -> bool:
    """Tell whether a problem must be solved: inside float64, to an accuracy it can certify."""
    unit = np.abs(np.longdouble(C)).max() * np.longdouble(a).sum()
    is_reachable = accuracy.get("eps", np.inf) > 1e-10 * unit and accuracy.get("rtol", 1) > 1e-11
    return is_inside(C, a, b) and is_reachable


def is_inside(C: Array, a: Array, b: Array) -> bool:
    """Tell whether costs and masses are far from the ends of float64, and totals equal."""
    C, a, b = (np.longdouble(x) for x in (C, a, b))
    sizes = [a.sum(), b.sum(), *([np.abs(C).max()] if C.any() else [])]
    low, high = INSIDE
    return all(low < x < high for x in sizes) and abs(sizes[0] / sizes[1] - 1) < 1e-9


# -- draws -------------------------------------------------------------------------------------


def draw_accuracy(rng: Rng) -> dict[str, float]:
    """Draw what to reach in every problem."""
    how = pick(rng, {"default": 3, "rtol": 4, "eps": 1})
    if how == "default":
        return {}
    if how == "eps":
        return {"eps": number(rng)}
    return {"rtol": float(10 ** rng.uniform(-9, 0)) if rng.random() < 0.8 else number(rng)}


def draw_count(rng: Rng) -> int:
    """Draw the number of problems."""
    return int(rng.integers(MOST // 4, MOST + 1))


def costs_of(rng: Rng, n: int, m: int) -> Array:
    """Draw a cost of any family, sign and scale."""
    C = COSTS[str(rng.choice(list(COSTS)))](rng, n, m)
    C = C - np.median(C) if rng.random() < 0.2 else C
    return at_scale(rng, C)[0] if rng.random() < 0.3 else C


def batch(rng: Rng) -> Many:
    """Draw stacked problems: one cost for all or one for each, and weights likewise."""
    n, m = (int(k) for k in rng.integers(1, LARGEST, 2))
    count = draw_count(rng)
    is_shared = rng.random() < 0.3
    costs = [costs_of(rng, n, m) for _ in range(1 if is_shared else count)]
    scale = 1.0 if rng.random() < 0.7 else number(rng)
    weights = [weights_of(rng, n, m, scale) for _ in range(count)]
    a, b = (np.stack([pair[side] for pair in weights]) for side in (0, 1))
    M = costs[0] if is_shared else np.stack(costs)
    problems = [(costs[0 if is_shared else k], a[k], b[k]) for k in range(count)]
    words = f"{count} of {n} x {m}, {'one cost' if is_shared else 'a cost each'}, mass {scale:.0e}"
    if rng.random() < 0.15:
        uniform = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
        problems = [(C, *uniform) for C, _, _ in problems]
        if is_shared:
            return Many(epsilot.solve_batch, (np.stack([M, M]),), problems[:2], words + ", uniform")
        return Many(epsilot.solve_batch, (M,), problems, words + ", uniform")
    return Many(epsilot.solve_batch, (M, a, b), problems, words)


def ragged(rng: Rng) -> Many:
    """Draw problems of many shapes, as lists."""
    count = draw_count(rng) // 2
    problems = []
    for _ in range(count):
        n, m = (int(k) for k in rng.integers(1, LARGEST, 2))
        problems.append((costs_of(rng, n, m), *weights_of(rng, n, m, 1.0)))
    M, a, b = (list(x) for x in zip(*problems, strict=True))
    return Many(epsilot.solve_batch, (M, a, b), problems, f"{count} of all shapes")


def weights_of(rng: Rng, n: int, m: int, scale: float) -> tuple[Array, Array]:
    """Draw weights of equal totals."""
    a = draw_masses(rng, n)
    a = np.asarray(np.longdouble(a / a.sum()) * np.longdouble(scale), dtype=np.float64)
    a = a if a.any() else np.full(n, 5e-324)
    a = a if np.isfinite(a).all() and np.longdouble(a).sum() < 1e308 else np.full(n, 1e306)
    return a, at_total(draw_masses(rng, m), a)


def clouds(rng: Rng) -> Many:
    """Draw pairs of clouds."""
    n, m = (int(k) for k in rng.integers(1, LARGEST, 2))
    d, count = int(rng.integers(1, 6)), draw_count(rng)
    metric = pick(rng, {"sqeuclidean": 3, "euclidean": 2, "cityblock": 2})
    scale = 1.0 if rng.random() < 0.7 else float(10 ** rng.uniform(-150, 150))
    X, Y = (scale * rng.normal(size=(count, k, d)) for k in (n, m))
    if rng.random() < 0.3:
        X, Y = np.rint(2 * X), np.rint(2 * Y)
    weights = [weights_of(rng, n, m, 1.0) for _ in range(count)]
    a, b = (np.stack([pair[side] for pair in weights]) for side in (0, 1))
    costs = [
        np.asarray(METRICS[metric](np.longdouble(x), np.longdouble(y)))
        for x, y in zip(X, Y, strict=True)
    ]
    problems = list(zip(costs, a, b, strict=True))
    words = f"{count} of {n} x {m} points in {d}-d, {metric}, size {scale:.0e}"
    call = with_metric(metric)
    return Many(call, (X, Y, a, b), problems, words, is_computed=True)


def with_metric(metric: str) -> Any:
    """Return `solve_sample_batch` with a metric, under its own name."""

    def solve_sample_batch(*args: Any, **keywords: Any) -> Any:
        return epsilot.solve_sample_batch(*args, metric=metric, **keywords)

    return solve_sample_batch


def pairwise(rng: Rng) -> Many:
    """Draw histograms, all pairs of which are compared with one cost."""
    n = int(rng.integers(1, LARGEST))
    count = int(rng.integers(2, 30))
    scale = 1.0 if rng.random() < 0.7 else number(rng)
    H = np.stack([weights_of(rng, n, 1, scale)[0] for _ in range(count)])
    total = np.longdouble(H[0]).sum()
    H = np.stack([H[0], *(at_total(h, H[0]) for h in H[1:])])
    if rng.random() < 0.5 or n == 1:
        M = at_scale(rng, METRICS["cityblock"](*[rng.normal(size=(n, 2))] * 2))[0]
        M = np.maximum(M, M.T)
        index = [(i, j) for i in range(count) for j in range(i + 1, count)]
        problems = [(M, H[i], H[j]) for i, j in index]
        return Many(epsilot.pairwise, (H, M), problems, f"pairs of {count} on {n}, {total:.0e}")
    m = int(rng.integers(1, LARGEST))
    other = int(rng.integers(1, 30))
    H2 = np.stack([at_total(draw_masses(rng, m), H[0]) for _ in range(other)])
    M = costs_of(rng, n, m)
    problems = [(M, h, w) for h in H for w in H2]
    words = f"{count} x {other} pairs on {n} x {m}, {total:.0e}"
    return Many(epsilot.pairwise, (H, M, H2), problems, words)


DRAWS = {"batch": batch, "ragged": ragged, "clouds": clouds, "pairwise": pairwise}


# -- cluster -----------------------------------------------------------------------------------


@cache
def local_client() -> Any:
    """Return a client of two threads of this process, which last as long as it does."""
    import distributed

    made = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    client = distributed.Client(made, set_as_default=False)
    atexit.register(client.close)
    return client


def cluster(rng: Rng) -> CaseOutcome:
    """Solve a batch, or a cloud whose rows are spread over the cluster."""
    return (of_batch if rng.random() < 0.6 else of_cloud)(rng)


def of_batch(rng: Rng) -> CaseOutcome:
    """Solve a batch on the cluster and here."""
    many = DRAWS[pick(rng, {"batch": 2, "ragged": 2, "clouds": 1, "pairwise": 1})](rng)
    accuracy = draw_accuracy(rng)
    name = f"{many.call.__name__} with client"
    outcome = CaseOutcome(name, label=f"{many.words}; {accuracy}", problems=len(many.problems))
    keywords = {**accuracy, **LIMITS}
    far = ask(many.call, *many.args, **keywords, client=local_client())
    here = ask(many.call, *many.args, **keywords)
    if outcome.settled(far) is None or here.value is None:
        if str(far.error) != str(here.error):
            outcome.blame(f"refused on the cluster ({far.error}), here: {here.error}")
        return outcome
    outcome.blame(*batch_defects(far, many, accuracy))
    for name in ("value", "lower_bound", "codes"):
        there, local = (getattr(answer.value, name) for answer in (far, here))
        bits = f"u{local.itemsize}"
        for k in np.flatnonzero(there.view(bits) != local.view(bits))[:1]:
            outcome.blame(f"{name} of problem {k} is {there[k]} on the cluster, here {local[k]}")
    return outcome


def of_cloud(rng: Rng) -> CaseOutcome:
    """Solve a cloud on the cluster and here."""
    n, m = (int(k) for k in rng.integers(1, 60, 2))
    d = int(rng.integers(1, 4))
    metric = pick(rng, {"sqeuclidean": 3, "euclidean": 1, "cityblock": 1})
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + rng.choice([0.0, 3.0])
    method = str(rng.choice(["auto", "sinkhorn", "apdagd", "accelerated_sinkhorn", "auction"]))
    keywords: dict[str, Any] = {"rtol": float(10 ** rng.uniform(-4, -0.5)), "method": method}
    keywords |= {"max_iter": int(10 ** rng.uniform(0, 2)), "on_limit": "ignore"}
    label = f"{n} x {m} in {d}-d, {metric}; {keywords}"
    outcome = CaseOutcome("solve_sample with client", method, label=label)
    far = ask(epsilot.solve_sample, X, Y, metric=metric, **keywords, client=local_client())
    result = outcome.settled(far)
    if result is None:
        return outcome
    C = METRICS[metric](np.longdouble(X), np.longdouble(Y))
    a, b = np.full(n, np.longdouble(1) / n), np.full(m, np.longdouble(1) / m)
    f, g = result.potentials
    pair = np.longdouble(f) - 4e-15 * C.max(), g
    claim = BoundClaim(result.value, result.lower_bound, result.plan, pair)
    outcome.blame(*claim_defects(FuzzKind(), C, a, b, claim))
    here = ask(epsilot.solve_sample, X, Y, metric=metric, lazy=True, **keywords)
    if here.value is not None and here.value.method == result.method:
        outcome.blame(*bit_defects(result, here.value, "a solve on the cluster"))
    return outcome
