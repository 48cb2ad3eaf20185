"""Our vector functions equal NumPy's and SciPy's to round-off."""

import numpy as np
import pytest
from scipy.special import entr

from epsilot.kernels import vectors

WIDE = np.linspace(-700, 700, 5001)
FUNCTIONS = {
    "exp": (vectors.exp, np.exp, WIDE, 1e-15),
    "log": (vectors.log, np.log, np.exp(WIDE), 5e-16),
    "expm1": (vectors.expm1, np.expm1, np.linspace(-3, 3, 5001), 2e-15),
    "expm1 near 0": (vectors.expm1, np.expm1, np.logspace(-300, -1, 500), 1e-15),
    "power": (lambda x: vectors.power(x, 0.7), lambda x: x**0.7, np.logspace(-9, 9, 500), 1e-14),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    own, theirs, x, tolerance = FUNCTIONS[name]
    np.testing.assert_allclose(own(x), theirs(x), rtol=tolerance)
    assert own(x.reshape(1, -1)).shape == (1, x.size)
    assert own(float(x[7])) == own(x)[7]
    assert isinstance(own(float(x[7])), float)


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (vectors.exp, -np.inf, 0.0),
        (vectors.exp, 0.0, 1.0),
        (vectors.exp, 710.0, np.inf),
        (vectors.log, 0.0, -np.inf),
        (vectors.log, 1.0, 0.0),
        (vectors.log, np.inf, np.inf),
        (vectors.expm1, 0.0, 0.0),
        (vectors.power, 0.0, 0.0),
    ],
)
def test_limits(function, x, expected):
    assert (function(x, 0.5) if function is vectors.power else function(x)) == expected


def test_the_logarithm_of_a_subnormal_number():
    x = np.array([5e-324, 1e-310, 2.0**-1022])
    np.testing.assert_allclose(vectors.log(x), np.log(x), rtol=1e-15)


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (40, 33), (300, 700)])
def test_products(shape, rng):
    A, u, v = rng.normal(size=shape), rng.normal(size=shape[0]), rng.normal(size=shape[1])
    tolerance = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(vectors.matvec(A, v), A @ v, **tolerance)
    np.testing.assert_allclose(vectors.rmatvec(A, u), A.T @ u, **tolerance)
    np.testing.assert_allclose(vectors.matvec(A.T, u), A.T @ u, **tolerance)
    np.testing.assert_allclose(vectors.dot(v, A[0]), v @ A[0], **tolerance)


def test_entropy_and_sums_of_logarithms(rng):
    X = rng.random((20, 30))
    X[::3] = 0
    np.testing.assert_allclose(vectors.entropy(X), entr(X).sum(), rtol=1e-14)
    x, y = np.array([0.0, -np.inf, 800.0, -np.inf]), np.array([1.0, 2.0, 799.0, -np.inf])
    np.testing.assert_allclose(vectors.logaddexp(x, y), np.logaddexp(x, y), rtol=1e-15)
