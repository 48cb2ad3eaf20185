"""Stochastic Sinkhorn: how coordinates are drawn."""

import numpy as np
import pytest

import epsilot
from epsilot.kernels import coordinate as kernels
from sample_problems import random, trace


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_sampling_follows_the_violations(power, rng):
    h = rng.random(150) * (rng.random(150) < 0.7)
    tops = np.array([h[:70].max(), h[70:].max()])
    uniforms = (np.arange(20_000) + 0.5) / 20_000
    chosen = [kernels.choose(h, 70, tops, power, u, np.empty_like(h)) for u in uniforms]
    expected = np.where(h > 0, h, 0.0 if power else 1.0) ** power
    counts = np.bincount(chosen, minlength=h.size) / uniforms.size
    np.testing.assert_allclose(counts, expected / expected.sum(), atol=1.01 / uniforms.size)


def test_large_power_picks_the_index_of_greenkhorn(rng):
    for _ in range(300):
        h = rng.random(40) * 1e-4
        tops, scaled = np.array([h[:15].max(), h[15:].max()]), np.empty_like(h)
        h[3], tops[0] = 1.1 * h.max(), 1.1 * h.max()  # clear of ties
        chosen = kernels.choose(h, 15, tops, 200.0, rng.random(), scaled)
        assert chosen == kernels.choose(h, 15, tops, np.inf, 0.0, scaled) == 3


FAMILY = ["sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn", "aam"]


def test_seed_matters_only_to_the_stochastic_method():
    M, a, b = random(20, 20, 1.0, seed=8)
    for method in FAMILY:
        runs = [
            epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper", seed=seed)
            for seed in (0, 1)
        ]
        is_same = trace(runs[0]) == trace(runs[1])
        assert is_same == (method != "stochastic_sinkhorn")
