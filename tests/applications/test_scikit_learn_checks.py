"""scikit-learn's own checks of estimators."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from epsilot import ColorTransfer, DomainAdapter, InvalidProblem, PairwiseTransport, exact

ESTIMATORS = [DomainAdapter(X_target="source", new_points="source"), PairwiseTransport()]
HAS_EMPTY_ROWS = "the check draws rows of zeros, which are no histograms"
EXCEPTIONS = {
    "DomainAdapter": {
        "check_fit_score_takes_y": "the public contract names the second argument ys"
    },
    "PairwiseTransport": {
        "check_estimators_dtypes": HAS_EMPTY_ROWS,
        "check_fit2d_1feature": HAS_EMPTY_ROWS,
    },
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    ESTIMATORS,
    expected_failed_checks=lambda estimator: EXCEPTIONS.get(type(estimator).__name__, {}),
)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_checks_of_pictures():
    """Pictures have three axes, for which scikit-learn has few checks."""
    found = check_estimator(ColorTransfer(), on_skip=None)
    assert [check["status"] for check in found] == ["passed"] * len(found)
    dark, light = np.random.default_rng(0).random((2, 8, 8, 3)) * [[[[0.4]]], [[[1.0]]]]
    assert ColorTransfer(20).fit_transform(dark, light).shape == dark.shape


def test_a_source_can_be_its_own_target():
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(DomainAdapter(X_target="source").fit_transform(X), X)
    smooth = DomainAdapter(X_target="source", reg=5.0).fit_transform(X)
    assert smooth.var() < 0.5 * X.var()
    with pytest.raises(InvalidProblem, match="X_target"):
        DomainAdapter(X_target="target").fit(X)


def test_costs_of_histograms():
    rng = np.random.default_rng(0)
    H, G, M = rng.random((4, 6)), rng.random((3, 6)), rng.random((6, 6))
    found = PairwiseTransport(M).fit(H).transform(G)
    for k, g in enumerate(G):
        for i, h in enumerate(H):
            expected = exact(M, g / g.sum(), h / h.sum()).value
            assert found[k, i] == pytest.approx(expected, rel=1e-9)
    by_bins = PairwiseTransport().fit(np.eye(4)).transform(np.eye(4))
    np.testing.assert_array_equal(by_bins, np.abs(np.subtract.outer(range(4), range(4))))


@pytest.mark.parametrize(
    ("X", "M", "message"),
    [
        ([[1.0, -1.0]], None, "row 0 of X holds -1"),
        ([[1.0, 1.0], [0.0, 0.0]], None, "row 1 of X has no mass"),
        ([[1.0, 1.0]], np.zeros((3, 3)), "M has shape"),
    ],
)
def test_what_is_no_histogram_is_refused(X, M, message):
    with pytest.raises(InvalidProblem, match=message):
        PairwiseTransport(M).fit(X)


def test_nearest_neighbours_in_a_pipeline():
    rng = np.random.default_rng(1)
    bins = np.arange(12)
    centres = np.repeat([3.0, 8.0], 15) + rng.normal(size=30)
    H = np.exp(-((bins - centres[:, None]) ** 2))
    y = np.repeat([0, 1], 15)
    neighbours = KNeighborsClassifier(3, metric="precomputed")
    model = make_pipeline(PairwiseTransport(), neighbours).fit(H[::2], y[::2])
    assert model.score(H[1::2], y[1::2]) >= 0.9
