import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

import epsilot
from epsilot import DomainAdapter
from epsilot.applications.estimators import interpolate, shepard_weights


@pytest.fixture
def moons():
    """Return two moons, and two others moved away."""
    Xs, ys = make_moons(60, noise=0.05, random_state=0)
    Xt, yt = make_moons(80, noise=0.05, random_state=1)
    return Xs, ys, Xt + np.array([4.0, 1.0]), yt


def test_parameters_survive_cloning(moons):
    adapter = DomainAdapter(X_target=moons[2], method="sinkhorn", reg=0.1, class_reg=0.5)
    copy = clone(adapter)
    assert copy.get_params().keys() == adapter.get_params().keys()
    assert copy.set_params(reg=0.2).reg == 0.2
    assert copy.class_reg == 0.5


@pytest.mark.parametrize("at_fit", [True, False], ids=["target in fit", "target at construction"])
def test_a_pipeline_trains_on_the_moved_source_and_predicts_on_the_target(moons, at_fit):
    Xs, ys, Xt, yt = moons
    adapter = DomainAdapter(
        X_target=None if at_fit else Xt, method="sinkhorn", reg=0.05, new_points="target"
    )
    pipeline = Pipeline([("adapt", adapter), ("svc", SVC(C=10))])
    pipeline.fit(Xs, ys, **({"adapt__Xt": Xt} if at_fit else {}))
    assert pipeline.score(Xt, yt) > 0.9
    assert SVC(C=10).fit(Xs, ys).score(Xt, yt) < 0.8


def test_a_grid_search_reaches_the_adapter(moons):
    Xs, ys, Xt, _ = moons
    adapter = DomainAdapter(X_target=Xt, new_points="source")
    pipeline = Pipeline([("adapt", adapter), ("svc", SVC())])
    search = GridSearchCV(pipeline, {"adapt__reg": [0.05, 0.5], "svc__C": [1.0, 20.0]}, cv=2)
    assert search.fit(Xs, ys).best_score_ > 0.85


def test_the_plan_is_certified_and_moves_to_barycentres(moons):
    Xs, _, Xt, _ = moons
    adapter = DomainAdapter(rtol=0.01).fit(Xs, Xt=Xt)
    X = adapter.coupling_
    assert X.shape == (60, 80)
    np.testing.assert_allclose(X.sum(axis=1), 1 / 60, atol=1e-14)
    np.testing.assert_allclose(X.sum(axis=0), 1 / 80, atol=1e-14)
    assert 0 <= adapter.gap_ <= 0.01 * adapter.cost_
    expected = epsilot.solve_sample(Xs, Xt, rtol=0.01)
    assert adapter.cost_ == expected.value
    np.testing.assert_allclose(adapter.transform(Xs), 60 * X @ Xt, atol=1e-10)
    np.testing.assert_allclose(adapter.fit_transform(Xs, Xt=Xt), 60 * X @ Xt, atol=1e-10)
    np.testing.assert_allclose(adapter.inverse_transform(Xt), 80 * X.T @ Xs, atol=1e-10)


def test_new_points_move_like_their_neighbours(rng):
    Xs = rng.normal(size=(200, 3))
    shift = np.array([3.0, -1.0, 2.0])
    adapter = DomainAdapter(method="exact", new_points="source").fit(Xs, Xt=Xs + shift)
    new = rng.normal(size=(50, 3))
    np.testing.assert_allclose(adapter.transform(new), new + shift, atol=1e-9)
    np.testing.assert_allclose(adapter.inverse_transform(new + shift), new, atol=1e-9)


def test_target_points_stay_when_they_are_the_new_points(moons):
    Xs, _, Xt, _ = moons
    adapter = DomainAdapter(X_target=Xt, new_points="target")
    assert np.linalg.norm(adapter.fit_transform(Xs) - Xs) > 1
    np.testing.assert_array_equal(adapter.transform(Xt), Xt)


def test_the_default_adapts_a_pipeline_that_predicts_on_its_target(moons):
    """The fitted source is moved, the fitted target is not, and unknown points cause a warning."""
    Xs, ys, Xt, yt = moons
    pipeline = make_pipeline(DomainAdapter(X_target=Xt, reg=0.05), SVC(C=10)).fit(Xs, ys)
    assert pipeline.score(Xt, yt) > 0.9
    adapter = pipeline[0]
    np.testing.assert_array_equal(adapter.transform(Xs), adapter.fit_transform(Xs, ys))
    mixed = np.concatenate([Xt[:3], Xs[:2]])
    np.testing.assert_array_equal(adapter.transform(mixed)[:3], Xt[:3])
    np.testing.assert_array_equal(adapter.transform(mixed)[3:], adapter.transform(Xs)[:2])
    with pytest.warns(UserWarning, match="2 of 5 points are in neither fitted domain"):
        moved = adapter.transform(np.concatenate([Xs[:3], Xs[:2] + 0.1]))
    np.testing.assert_array_equal(moved[3:], Xs[:2] + 0.1)


def test_the_rule_between_points_has_no_jumps(rng):
    from scipy.spatial import cKDTree

    points, values = rng.random((300, 2)), rng.random((300, 1))
    # A step is a thousandth of the points' distance: an interpolant with jumps shows them here.
    places = np.linspace([0.1, 0.2], [0.9, 0.7], 20_000)
    distance, index = cKDTree(points).query(places, k=9)
    path = interpolate(distance, index, values)
    assert np.abs(np.diff(path, axis=0)).max() < 0.02


def test_weights_at_a_point_and_between_equal_distances():
    weights = shepard_weights(np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(weights, [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])


def mixing(X, ys):
    """Return the mean share of the smaller class in what targets receive."""
    shares = np.stack([X[ys == label].sum(axis=0) for label in np.unique(ys)])
    return float((shares.min(axis=0) / shares.sum(axis=0)).mean())


def test_class_regularisation_keeps_classes_apart(moons):
    Xs, ys, Xt, _ = moons
    plain, regular = (
        DomainAdapter(method="sinkhorn", reg=0.3, class_reg=strength).fit(Xs, ys, Xt)
        for strength in (0.0, 2.0)
    )
    assert mixing(regular.coupling_, ys) < 0.5 * mixing(plain.coupling_, ys)


@pytest.mark.parametrize("unknown", [-1, None])
def test_known_labels_of_the_target_are_respected(moons, unknown):
    Xs, ys, Xt, yt = moons
    flipped = np.where(np.arange(80) % 2 == 0, 1 - yt, -1).astype(object)
    flipped[flipped == -1] = unknown
    X = DomainAdapter(method="exact").fit(Xs, ys, Xt, flipped).coupling_
    for j in range(0, 80, 2):
        assert X[ys != flipped[j], j].sum() < 1e-12


@pytest.mark.parametrize("method", ["pdasmd", "sinkhorn", "exact", "auto"])
def test_every_method_works(moons, method):
    Xs, _, Xt, _ = moons
    adapter = DomainAdapter(method=method, rtol=0.1).fit(Xs, Xt=Xt)
    assert adapter.gap_ <= 0.1 * adapter.cost_


NAN = [[0.0, 1.0], [np.nan, 1.0]]
GOOD = [[0.0, 1.0], [2.0, 1.0]]
BAD = {
    "no target": ({}, (GOOD,), "no target was given"),
    "one sample": ({}, ([[0.0, 1.0]], None, GOOD), "1 sample"),
    "one target": ({}, (GOOD, None, [[0.0, 1.0]]), "1 sample"),
    "NaN": ({}, (NAN, None, GOOD), "Xs holds NaN or infinity in row 1"),
    "NaN in target": ({}, (GOOD, None, NAN), "Xt holds NaN or infinity in row 1"),
    "features": ({}, (GOOD, None, [[1.0], [2.0]]), "Xs has 2 features and Xt 1"),
    "labels": ({}, (GOOD, [0], GOOD), "ys has shape"),
    "empty class": ({}, (GOOD, [0, 1], GOOD, [0, 7]), "class '7', which does not occur in ys"),
    "labels needed": ({"class_reg": 1.0}, (GOOD, None, GOOD), "ys is missing"),
    "class_reg": ({"class_reg": -1.0}, (GOOD, [0, 1], GOOD), "class_reg is -1.0"),
    "new_points": ({"new_points": "both"}, (GOOD, None, GOOD), "new_points is 'both'"),
    "neighbours": ({"n_neighbors": 0}, (GOOD, None, GOOD), "n_neighbors is 0"),
    "method": ({"method": "sinkorn"}, (GOOD, None, GOOD), "did you mean sinkhorn"),
    "two goals": ({"eps": 1.0, "reg": 1.0}, (GOOD, None, GOOD), "exactly one"),
}


@pytest.mark.parametrize(("keywords", "data", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence(keywords, data, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as raised:
        DomainAdapter(**keywords).fit(*data)
    assert message in str(raised.value)


def test_bad_input_after_fitting(moons):
    with pytest.raises(NotFittedError):
        DomainAdapter().transform(GOOD)
    with pytest.raises(AttributeError):
        _ = DomainAdapter().coupling_
    adapter = DomainAdapter().fit(moons[0], Xt=moons[2])
    with pytest.raises(ValueError, match="X has 3 features"):
        adapter.transform([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="X holds NaN"):
        adapter.inverse_transform(NAN)
