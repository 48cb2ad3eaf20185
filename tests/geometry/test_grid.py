"""Grids: range of the kernels, both domains, masses with zeros, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

import epsilot
from epsilot.geometry import Dense, Grid
from epsilot.geometry import grid as grid_module
from epsilot.geometry.axes import is_lossless
from tuning import tune


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("exponent", [690, 709, 735, 744.5, 760])
def test_a_kernel_below_the_range_of_floats_is_not_lost(metric, exponent):
    eta, grid = 1 / exponent, Grid((2,), metric=metric)
    for f in (np.array([1.5, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 0.99])):
        dense = Dense(np.array([[0.0, 1.0], [1.0, 0.0]])).lse_cols(f, eta)
        np.testing.assert_allclose(grid.lse_cols(f, eta), dense, rtol=1e-10)


@pytest.mark.parametrize(("n_in", "n_out"), [(5, 5), (5, 9), (9, 5), (1, 6), (6, 1)])
@pytest.mark.parametrize("reach", [0, 2, 7])
def test_far_terms_are_added_up(rng, n_in, n_out, reach):
    field = rng.random((3, n_in))
    is_far = np.abs(np.subtract.outer(np.arange(n_out), np.arange(n_in))) > reach
    far = field @ is_far.T * np.exp(-700) * 1e14
    assert is_lossless(field, 1.01 * far, 1, reach)
    assert is_lossless(field, 0.99 * far, 1, reach) == (far.max() == 0)


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
def test_grid_agrees_on_both_sides_of_the_switch_to_the_log_domain(metric, rng, monkeypatch):
    geometry = Grid((9, 8), metric=metric)
    g = rng.normal(size=72)
    used = []
    log = Grid._log
    monkeypatch.setattr(Grid, "_log", lambda *args: used.append(1) or log(*args))
    top = geometry.bounds[1]
    for eta, domain in ((top / 500, 0), (top / 5000, 1)):
        expected = Dense(geometry.block(0, 72)).lse_rows(g + top * (np.arange(72) == 0), eta)
        found = geometry.lse_rows(g + top * (np.arange(72) == 0), eta)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert len(used) == domain
    tune(monkeypatch, grid_module, max_kernel_axis=4)
    expected = Dense(geometry.block(0, 72)).lse_rows(g, top / 5000)
    np.testing.assert_allclose(geometry.lse_rows(g, top / 5000), expected, rtol=1e-12)


def test_masses_with_zeros_on_a_grid(rng):
    A, B = rng.random((6, 5)), rng.random((6, 5))
    A[:3] = 0
    B[:, 2] = 0
    B *= A.sum() / B.sum()
    for metric in ("cityblock", "sqeuclidean"):
        result = epsilot.solve_grid(A, B, metric=metric, rtol=0.05)
        M = Grid((6, 5), metric=metric).block(0, 30)
        exact = epsilot.exact(M, A.ravel(), B.ravel())
        assert result.converged
        assert result.lower_bound <= exact.value * (1 + 1e-12)
        assert exact.value * (1 - 1e-12) <= result.value
        rows, cols = result.plan_operator.marginals()
        assert np.abs(rows - A.ravel()).sum() <= 1e-12 * A.sum()
        assert np.abs(cols - B.ravel()).sum() <= 1e-12 * A.sum()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Grid((2, 2, 2, 2)), "one to three axes"),
        (lambda: Grid((3,), (3, 3)), "same number"),
        (lambda: Grid((3,), metric="cosine"), "'cityblock' and 'sqeuclidean'.*PointCloud"),
        (lambda: Grid((3,), spacing=0), "positive"),
        (lambda: epsilot.solve_grid(np.ones((2, 2, 2, 2)), np.ones(3)), "one to three axes"),
        (lambda: epsilot.solve(Grid((3, 3)), method="exact"), "explicit cost matrix"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(epsilot.InvalidProblem, match=words):
        call()


def test_a_plan_too_large_to_store_says_what_to_use():
    mass = np.full(10**6, 1e-6)
    result = epsilot.solve(Grid((1000, 1000)), mass, mass, rtol=0.5, max_iter=1, on_limit="ignore")
    with pytest.raises(MemoryError, match=r"7450\.6 GiB.*plan_operator"):
        result.plan  # noqa: B018
    assert result.plan_operator.row(5).shape == (10**6,)


@pytest.mark.parametrize("total", [0.0, 1e-12, 1e-6, 1.0])
def test_costs_of_masses_that_nearly_cancel(rng, total):
    v = rng.normal(size=24)
    v += (total - v.sum()) / v.size
    grid = Grid((24,), metric="sqeuclidean")
    np.testing.assert_allclose(grid.matvec(v), grid.block(0, 24) @ v, atol=1e-10)


SQUARES = [
    ((7, 9), None, 1.0),
    ((5, 6), (8, 3), (0.5, 2.0)),
    ((40,), (31,), 0.25),
    ((3, 4, 5), None, 3.0),
]


@pytest.mark.parametrize(("shape_a", "shape_b", "spacing"), SQUARES)
@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
def test_whole_potentials_have_exact_c_transforms(rng, metric, shape_a, shape_b, spacing):
    grid = Grid(shape_a, shape_b, metric, spacing)
    g = rng.normal(size=grid.shape[1]) * grid.bounds[1] * 10 ** rng.uniform(-4, 0, grid.shape[1])
    whole = grid.round_down(g)
    assert (whole <= g).all()
    assert (g - whole).max() <= 4 * np.finfo(float).eps * (np.abs(g).max() + grid.bounds[1])
    f = grid.ctransform_rows(whole)
    assert grid.ctransform_error(f, whole) == 0
    C = grid.block(0, grid.shape[0])
    exact = [min(Fraction(c) - Fraction(x) for c, x in zip(row, whole, strict=True)) for row in C]
    assert [Fraction(x) for x in f] == exact
    sums = C - whole
    assert all(
        Fraction(total) == Fraction(c) - Fraction(x)
        for row, costs in zip(sums, C, strict=True)
        for total, c, x in zip(row, costs, whole, strict=True)
    )
    assert grid.ctransform_error(f, g) > 0


@pytest.mark.parametrize("spacing", [0.1, (0.3, 7.0), (1e-3, 1 / 3), 1e-140, 1e149])
def test_l1_costs_are_lowered_until_whole_potentials_have_exact_c_transforms(rng, spacing):
    grid = Grid((9, 7), (8, 11), "cityblock", spacing)
    g = grid.round_down(rng.normal(size=grid.shape[1]) * grid.bounds[1])
    f = grid.ctransform_rows(g)
    assert grid.ctransform_error(f, g) == 0
    C = grid.block(0, grid.shape[0])
    for i, row in enumerate(C):
        least = min(Fraction(c) - Fraction(x) for c, x in zip(row, g, strict=True))
        assert 0 <= least - Fraction(f[i]) <= 100 * np.finfo(float).eps * grid.bounds[1]


@pytest.mark.parametrize("n", [3, 50, 200])
@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("spacing", [1.0, 0.3, 1e-3])
@pytest.mark.parametrize("rtol", [None, 1e-6, 1e-12])
def test_an_optimum_of_zero_is_certified(rng, n, metric, spacing, rtol):
    A = rng.random(n)
    for B in (A, 3 * A / 3):
        result = epsilot.solve_grid(A, B, metric=metric, spacing=spacing, rtol=rtol)
        assert result.converged
        assert result.gap >= 0


@pytest.mark.parametrize("spacing", [0.1, 1e-140, 1e149])
def test_no_unit_no_whole_numbers(spacing):
    grid = Grid((4, 4), None, "sqeuclidean", spacing)
    g = np.linspace(0, 1, 16) * grid.bounds[1]
    whole = grid.round_down(g)
    assert (whole <= g).all()
    assert np.isfinite(whole).all()
    f = grid.ctransform_rows(whole)
    assert 0 <= grid.ctransform_error(f, whole) <= 2e-14 * grid.bounds[1]


@pytest.mark.parametrize(("shape_a", "shape_b", "spacing"), SQUARES)
def test_pairs_and_envelopes_have_the_same_maxima(rng, shape_a, shape_b, spacing, monkeypatch):
    grid = Grid(shape_a, shape_b, "sqeuclidean", spacing)
    f, g = (rng.normal(size=n) for n in grid.shape)
    found = grid.ctransform_rows(g), grid.ctransform_cols(f)
    assert grid.compares_pairs
    tune(monkeypatch, grid_module, max_pair_entries=0)
    assert not grid.compares_pairs
    for x, y in zip(found, (grid.ctransform_rows(g), grid.ctransform_cols(f)), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-13 * grid.bounds[1])
    assert grid.ctransform_error(found[0], g) > 0


def test_noise_is_proved_to_1e_minus_9(rng):
    A, B = rng.random((2, 96, 96))
    result = epsilot.solve_grid(A, B, metric="sqeuclidean", normalize=True, rtol=1e-9)
    assert result.converged
    assert result.gap <= 1e-9 * result.value


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("how", [{"rtol": 1e-9}, {"reg": 1.0}, {"rtol": 0.1, "method": "pdasmd"}])
def test_few_cells_with_mass_are_a_stored_cost(rng, metric, how):
    A, B = np.zeros((2, 12, 10))
    A[2:5, 1:4], B[7:9, 6:9] = rng.random((3, 3)), rng.random((2, 3))
    grid = Grid(A.shape, B.shape, metric)
    rows, cols = np.flatnonzero(A), np.flatnonzero(B)
    part = grid.restricted(rows, cols)
    np.testing.assert_array_equal(part.C, grid.block(0, 120)[np.ix_(rows, cols)])
    assert grid.restricted(np.arange(120), np.arange(120)) is None
    result = epsilot.solve_grid(A, B, metric=metric, normalize=True, **how)
    assert result.converged
    whole = epsilot.solve(grid.block(0, 120), A.ravel(), B.ravel(), normalize=True, **how)
    gap = result.gap + whole.gap + 1e-12
    assert abs(result.value - whole.value) <= gap
