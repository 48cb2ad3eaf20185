"""Batches of PDASMD: rows by their masses, constants of the proof, and loops that do not grow."""

from fractions import Fraction

import numpy as np
import pytest

import epsilot
from epsilot.solvers.stochastic_steps import TUNING, coupling, draw_rows
from epsilot_lab.instances import images


@pytest.mark.parametrize("batching", ["paper", "long", "strata"])
def test_rows_are_drawn_in_proportion_to_their_masses(batching):
    p = np.array([0.05, 0.5, 0.15, 0.3])
    selected, sample = draw_rows(np.random.default_rng(0), p, 20_000, 3, batching)
    assert sample.shape == (20_000, 3)
    assert 0 <= selected < 20_000
    np.testing.assert_allclose(np.bincount(sample.ravel()) / sample.size, p, atol=0.01)


def test_each_stratum_of_mass_gives_one_row():
    p = np.full(12, 1 / 12)
    _, sample = draw_rows(np.random.default_rng(0), p, 50, 4, "strata")
    assert (sample // 3 == np.arange(4)).all()


@pytest.mark.parametrize(
    ("batching", "batch_size", "largest", "smoothness", "tau2"),
    [
        ("paper", 1, "1/64", 1, "1/2"),
        ("paper", 8, "1/64", 1, "1/16"),
        ("long", 1, "1/64", 1, "1/2"),
        ("long", 8, "1/64", "1/8", "1/2"),
        ("strata", 32, "1/64", "1/32", "1/2"),
        ("long", 64, "1/64", "1/32", "1/4"),
        ("long", 4, "1/2", 1, "1/8"),
    ],
)
def test_the_constants_are_those_of_the_proof(batching, batch_size, largest, smoothness, tau2):
    found = coupling(batching, batch_size, 1.0, float(Fraction(largest)))
    assert found == (Fraction(smoothness), Fraction(tau2))
    assert found.tau2 * found.smoothness >= 1 / (2 * batch_size)  # what the variance needs
    if batching != "paper":
        assert found.smoothness >= TUNING.column_growth * Fraction(largest)


def test_outer_loops_grow_with_the_batch_of_the_listing_only():
    problem = images(8, 0)
    loops = {
        (batching, batch_size): epsilot.solve(
            *problem, eps=0.2, stop="paper", method="pdasgd", batching=batching,
            batch_size=batch_size,
        ).n_iter
        for batching in ("paper", "long", "strata")
        for batch_size in (1, 8)
    }  # fmt: skip
    assert loops["paper", 8] > 2.5 * loops["paper", 1]
    assert loops["long", 8] < 1.15 * loops["long", 1]
    assert loops["strata", 8] < 1.15 * loops["strata", 1]
    assert loops["long", 1] == loops["paper", 1]


@pytest.mark.parametrize("batching", ["long", "strata"])
@pytest.mark.parametrize("batch_size", [2, 5, 49, 1000])
def test_any_batch_is_certified(batching, batch_size):
    M, a, b = images(7, 1)
    wish = {"eps": 0.01, "method": "pdasgd", "batching": batching, "batch_size": batch_size}
    result = epsilot.solve(M, a, b, **wish)
    assert result.converged
    assert result.gap <= 0.01
