"""SciPy's Wasserstein distances by SciPy's signatures."""

import inspect

import numpy as np
import pytest
from scipy import stats

import epsilot.scipy

NAMES = ["wasserstein_distance", "wasserstein_distance_nd"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_those_of_scipy(name):
    ours, theirs = (inspect.signature(getattr(m, name)) for m in (epsilot.scipy, stats))
    assert list(ours.parameters) == list(theirs.parameters)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_distances_are_those_of_scipy(name, is_weighted, scale):
    rng = np.random.default_rng(0)
    shape = (2,) if name.endswith("nd") else ()
    x, y = rng.normal(size=(11, *shape)), rng.normal(size=(7, *shape))
    weights = (scale * rng.random(11), rng.random(7)) if is_weighted else ()
    ours, theirs = (getattr(m, name)(x, y, *weights) for m in (epsilot.scipy, stats))
    assert ours == pytest.approx(theirs, rel=1e-7)
    assert isinstance(ours, float)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(
    ("values", "expected"),
    [(([1, np.inf], [1, 2]), np.inf), (([np.inf], [np.inf]), np.nan), (([np.nan], [1]), np.nan)],
)
def test_values_that_are_not_finite(values, expected):
    for parts in (values, [np.column_stack([x, x]) for x in values]):
        np.testing.assert_equal(epsilot.scipy.wasserstein_distance_nd(*parts), expected)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([], [1]), "empty"),
        (([1], [1], [1, 2]), "same size"),
        (([1, 2], [1], [1, -2]), "non-negative"),
        (([1, 2], [1], [0, 0]), "positive and finite"),
        (([[[1]]], [1]), "one or two"),
        (([[1]], [1]), "must be equal"),
        (([[1]], [[1, 2]]), "columns"),
    ],
)
def test_errors_are_those_of_scipy(arguments, match):
    for module in (stats, epsilot.scipy):
        with pytest.raises(ValueError, match=match):
            module.wasserstein_distance_nd(*arguments)
