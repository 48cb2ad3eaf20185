"""A resumed run repeats the uninterrupted one: every method, both stops, its variants."""

import itertools

import numpy as np
import pytest
from by_hand import synthetic
from test_stops import ACCELERATED, VARIANTS, WITH_CONSTANTS

import epsilot
from sample_problems import images, random, trace

STOPS = "paper", "certificate"
#: (method, arguments, instance); runs that would take long are compared up to an iteration.
RUNS = [
    *(
        (method, {"eps": 0.01, "stop": stop, "max_iter": 60, "on_limit": "ignore"}, "tiny images")
        for method, stop in itertools.product(ACCELERATED, STOPS)
    ),
    *(
        (method, {name: (10 if method == "packing_lp" else 1) * value}, "images")
        for method in WITH_CONSTANTS
        for name, value in (("eps", 0.01), ("rtol", 0.05))
    ),
    *(
        (method, {**goal, **options}, "rectangular")
        for method, options in VARIANTS.values()
        for goal in ({"eps": 0.01}, {"eps": 0.1, "stop": "paper"})
    ),
    *(
        ("sinkhorn", {"eps": 2e-3, "domain": domain, "relaxation": relaxation}, "images")
        for domain in ("auto", "log", "absorption")
        for relaxation in (None, 1.0, 1.9)
    ),
    *(
        ("sinkhorn_newton", goal, "rectangular")
        for goal in ({"reg": 2e-3, "tol": 1e-8}, {"reg": 0.1, "tol": 1e-8}, {"eps": 1e-3})
    ),
    ("aam", {"eps": 0.1, "stop": "paper", "rule": "violation"}, "rectangular"),
    ("apdagd", {"eps": 0.1, "stop": "paper", "rule": "violation"}, "rectangular"),
    *(("pdasmd", {"eps": 0.02, "stop": stop, "batch_size": 2}, "wide") for stop in STOPS),
    ("pdasgd", {"eps": 0.02, "batch_size": 4, "batching": "strata"}, "wide"),
    *(
        ("unbalanced_pdasmd", {"unbalanced": 0.5, **goal, **options}, "wide")
        for goal in ({"rtol": 0.01}, {"reg": 0.05, "tol": 1e-6})
        for options in ({}, {"hybrid": "sinkhorn"})
    ),
]
INSTANCES = {
    "tiny images": lambda: synthetic(4, 2),
    "images": lambda: images(5),
    "rectangular": lambda: random(14, 11, 0.5, seed=6),
    "wide": lambda: random(20, 25, seed=8),
}


@pytest.mark.parametrize(("method", "arguments", "instance"), RUNS, ids=str)
def test_a_resumed_run_repeats_the_uninterrupted_one(method, arguments, instance, tmp_path):
    run = dict(zip("Mab", INSTANCES[instance](), strict=True), method=method, seed=5, **arguments)
    whole = epsilot.solve(**run)
    path = tmp_path / "run.npz"
    half = {"max_iter": max(1, whole.n_iter // 2), "on_limit": "ignore"}
    epsilot.solve(**{**run, **half}, checkpoint=path)
    resumed = epsilot.solve(**run, resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work.operations == whole.work.operations
    np.testing.assert_array_equal(resumed.plan, whole.plan)
