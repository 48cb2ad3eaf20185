"""Batches and clouds on a Dask cluster in this process: true bounds, and the same bits."""

from __future__ import annotations

import atexit
import logging
from functools import cache
from typing import Any

import numpy as np

import epsilot

from . import batches
from .objectives import Claim, Kind, claim_defects
from .outcome import Outcome, ask
from .problems import METRICS, Rng, pick
from .solves import bit_defects


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


def cluster(rng: Rng) -> Outcome:
    """Solve a batch, or a cloud whose rows are spread over the cluster."""
    return (of_batch if rng.random() < 0.6 else of_cloud)(rng)


def of_batch(rng: Rng) -> Outcome:
    """Solve a batch on the cluster and here."""
    many = batches.DRAWS[pick(rng, {"batch": 2, "ragged": 2, "clouds": 1, "pairwise": 1})](rng)
    accuracy = batches.draw_accuracy(rng)
    name = f"{many.call.__name__} with client"
    outcome = Outcome(name, label=f"{many.words}; {accuracy}", problems=len(many.problems))
    keywords = {**accuracy, **batches.LIMITS}
    far = ask(many.call, *many.args, **keywords, client=local_client())
    here = ask(many.call, *many.args, **keywords)
    outcome.blame(*far.defects)
    if far.value is None or here.value is None:
        outcome.ending = "refused" if far.is_refused else "raised"
        if str(far.error) != str(here.error):
            outcome.blame(f"refused on the cluster ({far.error}), here: {here.error}")
        return outcome
    outcome.ending = "solved"
    outcome.blame(*batches.batch_defects(far, many, accuracy))
    names = ("value", "lower_bound", "codes")
    if any(getattr(far.value, x).tobytes() != getattr(here.value, x).tobytes() for x in names):
        outcome.blame("a batch on the cluster differs in its bits")
    return outcome


def of_cloud(rng: Rng) -> Outcome:
    """Solve a cloud on the cluster and here."""
    n, m = (int(k) for k in rng.integers(1, 60, 2))
    d = int(rng.integers(1, 4))
    metric = pick(rng, {"sqeuclidean": 3, "euclidean": 1, "cityblock": 1})
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(m, d)) + rng.choice([0.0, 3.0])
    method = str(rng.choice(["auto", "sinkhorn", "apdagd", "accelerated_sinkhorn", "auction"]))
    keywords: dict[str, Any] = {"rtol": float(10 ** rng.uniform(-4, -0.5)), "method": method}
    keywords |= {"max_iter": int(10 ** rng.uniform(0, 2)), "on_limit": "ignore"}
    label = f"{n} x {m} in {d}-d, {metric}; {keywords}"
    outcome = Outcome("solve_sample with client", method, label=label)
    far = ask(epsilot.solve_sample, X, Y, metric=metric, **keywords, client=local_client())
    outcome.blame(*far.defects)
    if far.value is None:
        outcome.ending = "refused" if far.is_refused else "raised"
        return outcome
    result = far.value
    outcome.ending = result.status.name.lower()
    C = METRICS[metric](np.longdouble(X), np.longdouble(Y))
    a, b = np.full(n, np.longdouble(1) / n), np.full(m, np.longdouble(1) / m)
    f, g = result.potentials
    pair = np.longdouble(f) - 4e-15 * C.max(), g
    claim = Claim(result.value, result.lower_bound, result.plan, pair)
    outcome.blame(*claim_defects(Kind(), C, a, b, claim))
    here = ask(epsilot.solve_sample, X, Y, metric=metric, lazy=True, **keywords)
    if here.value is not None and here.value.method == result.method:
        outcome.blame(*bit_defects(result, here.value, "a solve on the cluster"))
    return outcome
