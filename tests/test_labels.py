"""Data frames are matched by their labels, or refused where these differ."""

import numpy as np
import pytest

import epsilot
from epsilot.labels import columns_like, labels_of, weights_like

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
X, Y = RNG.random((6, 3)), RNG.random((5, 3))
NAMES, SHUFFLED = ["u", "v", "w"], [2, 0, 1]
FIRST = pandas.DataFrame(X, columns=NAMES)
SECOND = pandas.DataFrame(Y, columns=NAMES)
OTHER_ORDER = SECOND.iloc[:, SHUFFLED]
RENAMED = SECOND.rename(columns={"w": "z"})
M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
TOWNS = ["a", "b", "c", "d"]
COST = pandas.DataFrame(M, index=TOWNS, columns=TOWNS)
H = pandas.DataFrame(RNG.dirichlet(np.ones(4), 3), columns=TOWNS)

CLOUDS = {
    "PointCloud": lambda x, y: epsilot.solve(epsilot.PointCloud(x, y)).value,
    "PointCloud of a rare metric": lambda x, y: (
        epsilot.solve(epsilot.PointCloud(x, y, "canberra")).value
    ),
    "solve_sample_batch": lambda x, y: epsilot.solve_sample_batch(x, y).value[0],
    "solve_sample_batch of lists": lambda x, y: epsilot.solve_sample_batch(
        x, [y, y], rtol=1e-9
    ).value[1],
    "solve_sample": lambda x, y: epsilot.solve_sample(x, y).value,
    "wasserstein": lambda x, y: epsilot.wasserstein(x, y),
    "barycenter_sample": lambda x, y: epsilot.barycenter_sample([x, y], 3, init=X[:3]).value,
}


@pytest.mark.parametrize("name", CLOUDS)
def test_columns_are_matched_by_name(name):
    call = CLOUDS[name]
    expected = call(X, Y)
    assert call(FIRST, SECOND) == call(FIRST, OTHER_ORDER) == call(X, SECOND) == expected
    assert call(X, OTHER_ORDER) != expected  # without names on both sides, as they are
    with pytest.raises(epsilot.InvalidProblem, match=r"columns 'u', 'v', 'z' and .* 'u', 'v', 'w'"):
        call(FIRST, RENAMED)


def test_columns_of_polars_are_matched():
    polars = pytest.importorskip("polars")
    first, second = (polars.DataFrame(x, schema=NAMES, orient="row") for x in (X, Y))
    expected = epsilot.solve_sample(X, Y).value
    assert epsilot.solve_sample(first, second.select(["w", "u", "v"])).value == expected
    assert epsilot.solve_sample(FIRST, second.select(["w", "u", "v"])).value == expected


def test_weights_follow_the_labels_of_the_cost():
    a, b = H.iloc[0], H.iloc[1]
    for call in (epsilot.solve, epsilot.exact):
        expected = call(M, a.to_numpy(), b.to_numpy()).value
        assert call(COST, a[::-1], b.iloc[[1, 3, 0, 2]]).value == expected
        assert call(COST.iloc[::-1], a, b).value == pytest.approx(expected)
    plan = np.outer(a, b)
    audit = epsilot.certify(COST, a[::-1], b, plan=plan)
    assert audit.is_feasible
    with pytest.raises(epsilot.InvalidProblem, match=r"the rows of M have 'a', 'b', 'c'"):
        epsilot.solve(COST, a.rename({"d": "e"}), b)


def test_histograms_follow_the_labels_of_the_cost():
    mixed = H[["d", "b", "a", "c"]]
    expected = epsilot.pairwise(H.to_numpy(), M).value
    np.testing.assert_array_equal(epsilot.pairwise(mixed, COST).value, expected)
    found = epsilot.barycenter(mixed, COST)
    assert found.value == epsilot.barycenter(H.to_numpy(), M).value
    with pytest.raises(epsilot.InvalidProblem, match="each once"):
        epsilot.pairwise(H.set_axis(["a", "a", "b", "c"], axis=1), COST)


def test_estimators_match_columns():
    pytest.importorskip("sklearn")
    expected = epsilot.DomainAdapter().fit(X, Xt=Y).transform(X)
    adapter = epsilot.DomainAdapter().fit(FIRST, Xt=OTHER_ORDER)
    np.testing.assert_array_equal(adapter.transform(FIRST), expected)


def test_counts_are_no_labels():
    counted = pandas.DataFrame(Y)
    assert labels_of(counted.columns) is None
    assert columns_like(FIRST, counted, "X_b", "X_a") is FIRST
    weights = pandas.Series(np.ones(4)), pandas.Series(np.ones(4))
    assert weights_like(COST, *weights) == weights
    assert weights_like(M, H.iloc[0], None)[0] is not None


def test_batches_match_weights_with_the_labels_of_the_cost():
    expected = epsilot.solve_batch(M, H.to_numpy(), H.to_numpy()[0]).value
    mixed = H[["d", "b", "a", "c"]]
    listed = [row for _, row in mixed.iterrows()]
    for cost, a in ((COST, mixed), (COST, listed), ([COST] * 3, listed)):
        found = epsilot.solve_batch(cost, a, mixed.iloc[0], rtol=1e-9).value
        assert found == pytest.approx(expected, abs=1e-12)


def test_a_frame_that_does_not_fit_fails_its_own_problem():
    found = epsilot.solve_sample_batch(FIRST, [SECOND, RENAMED, OTHER_ORDER], on_error="collect")
    assert found.value[0] == found.value[2] == epsilot.solve_sample_batch(X, Y).value[0]
    assert np.isnan(found.value[1])
    assert "columns 'u', 'v', 'z'" in str(found.errors[1])


def test_a_batch_of_other_clouds_is_not_resumed(tmp_path):
    path, clouds = tmp_path / "batch.npz", [SECOND[["u", "v"]]] * 2
    many = pandas.DataFrame(np.random.default_rng(1).random((600, 2)), columns=["u", "v"])
    other = many.copy()
    other.iloc[300] += 1.0  # in the part that its text leaves out
    epsilot.solve_sample_batch(many, clouds, checkpoint=path)
    epsilot.solve_sample_batch(many, clouds, resume=path)
    with pytest.raises(epsilot.InvalidProblem, match="problem"):
        epsilot.solve_sample_batch(other, clouds, resume=path)
