"""Kernels of stored costs against their NumPy twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import numpy_kernels as reference
from epsilot import parallel
from epsilot.geometry import Dense, Geometry
from epsilot.kernels import dense
from tuning import tuned


class Tiled(Geometry):
    """A cost given by blocks, as lazy geometries are."""

    def __init__(self, C, step):
        self.C, self.shape, self.step = C, C.shape, step

    def block(self, start, stop):
        return np.ascontiguousarray(self.C[start:stop])

    def blocks(self):
        for start in range(0, self.shape[0], self.step):
            stop = min(start + self.step, self.shape[0])
            yield start, stop, self.block(start, stop)

    def shifted(self, delta):
        return Tiled(self.C + delta, self.step)


def case(seed, n, m, scale, are_empty):
    """Return a cost and potentials, -inf where a side has empty points."""
    rng = np.random.default_rng(seed)
    C = rng.random((n, m)) * scale
    f, g = rng.normal(size=n), rng.normal(size=m)
    for x, is_empty in zip((f, g), are_empty, strict=True):
        if is_empty and x.size > 1:
            x[rng.random(x.size) < 0.3] = -np.inf
            x[rng.integers(x.size)] = 0.5
    return C, f, g


CASES = st.builds(
    case,
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 80),
    m=st.sampled_from([1, 2, 7, 33, 511, 513, 1030]),
    scale=st.sampled_from([1.0, 100.0]),
    are_empty=st.tuples(st.booleans(), st.booleans()),
)


@given(
    CASES,
    st.sampled_from([1e-3, 0.05, 2.0]),
    st.sampled_from([None, 1, 13]),
    st.integers(1, 3),
)
def test_geometry_equals_its_numpy_twin(case, eta, step, n_threads):
    C, f, g = case
    geometry = Dense(C) if step is None else Tiled(C, step)
    v, u, d = np.cos(np.arange(g.size)) ** 2, np.sin(np.arange(f.size)) ** 2, np.ones(g.size)
    with np.errstate(all="ignore"):
        r, c, mass = reference.log_marginals(C, f, g, eta)
        shift = eta * mass  # keep the exponentials in range
        h = f - shift
        expected = {
            "lse_rows": reference.lse_rows(C, g, eta),
            "lse_cols": reference.lse_cols(C, f, eta),
            "log_r": r,
            "log_c": c,
            "mass": np.array(mass),
            "apply_rows": reference.apply_rows(C, h, g, eta, v),
            "apply_cols": reference.apply_cols(C, h, g, eta, u),
            "price": np.concatenate(reference.apply_cost_rows(C, h, g, eta, v, d)),
            "ctransform_rows": reference.ctransform_rows(C, g),
            "ctransform_cols": reference.ctransform_cols(C, f),
            "matvec": C @ v,
            "gibbs": reference.gibbs(C, h, g, eta),
        }
    with tuned(parallel, min_entries_per_thread=16), parallel.limit(n_threads):
        log_r, log_c, log_mass = geometry.log_marginals(f, g, eta)
        found = {
            "lse_rows": geometry.lse_rows(g, eta),
            "lse_cols": geometry.lse_cols(f, eta),
            "log_r": log_r,
            "log_c": log_c,
            "mass": np.array(log_mass),
            "apply_rows": geometry.apply_rows(h, g, eta, v),
            "apply_cols": geometry.apply_cols(h, g, eta, u),
            "price": np.concatenate(geometry.price_rows(h, g, eta, v, d)),
            "ctransform_rows": geometry.ctransform_rows(g),
            "ctransform_cols": geometry.ctransform_cols(f),
            "matvec": geometry.matvec(v),
            "gibbs": geometry.gibbs(h, g, eta, 0, f.size),
        }
    for name, value in expected.items():
        # exponents reach max|C| / η, and carry that many units of round-off
        slack = 1e-13 * (1 + C.max() / eta)
        np.testing.assert_allclose(found[name], value, rtol=slack, atol=slack, err_msg=name)


def test_results_do_not_depend_on_the_number_of_threads(rng):
    n, m, eta = 300, 700, 0.02
    geometry = Dense(rng.random((n, m)))
    f, g = rng.normal(size=n), rng.normal(size=m)
    runs = []
    for n_threads in (1, 2, 3):
        with parallel.limit(n_threads):
            runs.append(
                np.concatenate(
                    [
                        geometry.lse_rows(g, eta),
                        geometry.lse_cols(f, eta),
                        *geometry.log_marginals(f, g, eta)[:2],
                        geometry.ctransform_cols(f),
                        geometry.apply_cols(f, g, eta, f),
                    ]
                )
            )
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_a_column_below_the_smallest_float_keeps_its_logarithm():
    C = np.array([[0.0, 1e4], [0.0, 1e4]])
    _, log_c, _ = Dense(C).log_marginals(np.zeros(2), np.zeros(2), 1.0)
    np.testing.assert_allclose(log_c, [np.log(2), np.log(2) - 1e4])


@pytest.mark.parametrize("case", ["good guess", "high entry elsewhere", "low rows", "empty row"])
def test_log_marginals_survive_a_wrong_guess_of_their_level(rng, case):
    C, f, g = rng.uniform(0, 1, (6, 7)), rng.normal(size=6), rng.normal(size=7)
    if case == "high entry elsewhere":
        f[0] = f.max() + 1.0
        C[0] = 90.0  # the row of largest f holds none of the mass
    elif case == "low rows":
        f[2] -= 80.0
    elif case == "empty row":
        f[3] = -np.inf
    for found, expected in zip(
        Dense(C).log_marginals(f, g, 0.05), reference.log_marginals(C, f, g, 0.05), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


SHAPES = [(7, 5), (5, 7), (1, 9), (9, 1), (33, 70)]


@pytest.mark.parametrize("shape", SHAPES)
def test_scaling_kernels(shape, rng):
    n, m = shape
    C, f, g, eta = rng.random(shape), rng.normal(size=n), rng.normal(size=m), 0.3
    K, W, average = np.empty(shape), np.empty(shape), rng.random(shape)
    top, lse, out = np.empty(n), np.empty(n), np.empty(m)
    dense.gibbs(C, f, g, 1 / eta, K, 0, n)
    np.testing.assert_allclose(K, np.exp((f[:, None] + g - C) / eta), rtol=1e-13)
    dense.weigh_rows(C, g, 1 / eta, W, top, lse, 0, n)
    np.testing.assert_allclose(lse, logsumexp((g - C) / eta, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(top, (g - C).max(axis=1))
    np.testing.assert_allclose(W, np.exp((g - C - top[:, None]) / eta), rtol=1e-13)
    dense.rmatvec(K, f, out, 0, m)
    np.testing.assert_allclose(out, K.T @ f, rtol=1e-9, atol=1e-9 * np.abs(K).max())
    expected = 0.7 * average + f[:, None] * W
    dense.blend(average, 0.7, f, W, 0, n)
    np.testing.assert_allclose(average, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("omega", [1.0, 1.7])
@pytest.mark.parametrize("n_chunks", [1, 3])
def test_sweep(omega, n_chunks, rng):
    K, v = rng.random((8, 6)) + 0.1, rng.random(6)
    p, u = rng.dirichlet(np.ones(8)), 0.2 * rng.random(8)
    t = p / (K @ v) / u
    limit = np.median(t)
    expected = np.where(t <= limit, u * t**omega, u * t)
    errors, parts = np.empty(n_chunks), np.empty((n_chunks, 6))
    dense.scaling_sweep(K, v, p, u, omega, limit, errors, parts, 0, n_chunks)
    np.testing.assert_allclose(u, expected, rtol=1e-13)
    np.testing.assert_allclose(parts.sum(axis=0), K.T @ u, rtol=1e-13)
    assert errors.sum() == pytest.approx(np.abs(u * (K @ v) - p).sum(), rel=1e-10, abs=1e-15)
