import numpy as np
import pytest

import epsilot


def shape(seed, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, d)) * np.linspace(2, 1, d)
    X[:15] += np.linspace(4, 1, d)
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return X, Q, rng.permutation(40)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_it_finds_the_map(seed, factor):
    X, Q, order = shape(seed)
    if factor == 1.0:
        Y = X[order] @ Q + 5
        matcher = epsilot.ShapeMatcher().fit(X, Y)
        np.testing.assert_allclose(matcher.rotation_, Q, atol=1e-9)
        np.testing.assert_allclose(matcher.transform(X), X @ Q + 5, atol=1e-8)
        assert (matcher.matches_ == np.argsort(order)).all()
    else:
        Y = 1.2 * X[order] @ Q - 1
        matcher = epsilot.ShapeMatcher(scale=True, rtol=1e-3).fit(X, Y)
        assert matcher.scale_ == pytest.approx(1.2, rel=0.02)
        assert np.abs(matcher.fit_transform(X, Y) - (1.2 * X @ Q - 1)).mean() < 0.1
    assert matcher.is_reflection_ == (np.linalg.det(Q) < 0)
    assert matcher.result_.converged


def test_shapes_of_other_dimensions():
    X, _, _ = shape(0)
    matcher = epsilot.ShapeMatcher(rtol=0.1).fit(X, np.column_stack([X[::-1], np.zeros(40)]))
    assert matcher.rotation_.shape == (2, 3)
    np.testing.assert_allclose(matcher.rotation_[:, 2], 0, atol=1e-9)
    assert not matcher.is_reflection_


def test_refusals():
    X, _, _ = shape(0)
    with pytest.raises(epsilot.InvalidProblem, match="has not been fitted"):
        epsilot.ShapeMatcher().transform(X)
    with pytest.raises(epsilot.InvalidProblem, match="3 coordinates per point"):
        epsilot.ShapeMatcher(rtol=0.5).fit(X, X).transform(np.ones((2, 3)))
