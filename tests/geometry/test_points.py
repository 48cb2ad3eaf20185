"""Point clouds: bounds, float32 passes, starts from coarse clouds, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import epsilot
from epsilot.engine import starts
from epsilot.geometry import PointCloud, tree_index
from epsilot.geometry import points as points_module
from epsilot.geometry.points import KernelCloud
from tuning import tune


@pytest.mark.parametrize(
    ("metric", "kind"),
    [("sqeuclidean", KernelCloud), ("canberra", PointCloud), (lambda u, v: u @ v, PointCloud)],
)
def test_the_metric_decides_the_class_of_a_cloud(rng, metric, kind):
    cloud = PointCloud(rng.random((4, 2)), rng.random((5, 2)), metric, single=True)
    for made in (cloud, cloud.shifted(1.0), cloud.restricted(np.arange(2), np.arange(3))):
        assert type(made) is kind
        assert made.is_blockwise == (kind is PointCloud)
        assert (made.rough is made) == (kind is PointCloud)


def test_float32_sweeps_lead_to_a_float64_certificate(rng):
    X, Y = rng.random((60, 2)), rng.random((80, 2))
    exact = epsilot.exact(cdist(X, Y, "sqeuclidean")).value
    lazy = epsilot.solve_sample(X, Y, lazy=True, rtol=0.02, method="sinkhorn")
    assert lazy.converged
    assert lazy.lower_bound <= exact * (1 + 1e-12) <= lazy.value * (1 + 1e-12)
    rows, _ = lazy.plan_operator.marginals()
    np.testing.assert_allclose(rows, 1 / 60, atol=1e-14)


def test_only_rough_passes_are_in_float32(rng):
    X, Y = rng.random((2, 70, 3))
    single, double = PointCloud(X, Y, single=True), PointCloud(X, Y)
    f, g = rng.normal(size=(2, 70))
    for name, args in {
        "lse_rows": (g, 0.1),
        "lse_cols": (f, 0.1),
        "log_marginals": (f, g, 0.1),
        "marginals": (f, g, 0.1),
        "ctransform_rows": (g,),
        "matvec": (g,),
    }.items():
        found, wanted = (np.hstack(getattr(cloud, name)(*args)) for cloud in (single, double))
        np.testing.assert_array_equal(found, wanted)
    for name, x in (("lse_rows", g), ("lse_cols", f)):
        wanted, rough = getattr(double, name)(x, 0.1), getattr(single.rough, name)(x, 0.1)
        assert rough.dtype == np.float64
        assert 0 < np.abs(rough - wanted).max() < 1e-4
        for careful in (double.rough, single.exact.rough, single.exact):
            np.testing.assert_array_equal(getattr(careful, name)(x, 0.1), wanted)
        far = getattr(single.rough, name)(x, 1e-5)  # float32 has no digits for such exponents
        np.testing.assert_array_equal(far, getattr(double, name)(x, 1e-5))


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_the_largest_cost_of_a_large_cloud_is_between_corners_of_hulls(metric, rng, monkeypatch):
    for d in (1, 2, 3):
        X, Y = rng.normal(size=(300, d)) + 0.1, rng.normal(size=(200, d))
        expected = cdist(X, Y, metric).max()
        tune(monkeypatch, points_module, max_compared_entries=20_000)
        assert PointCloud(X, Y, metric).bounds[1] == pytest.approx(expected, rel=1e-12)
        flat = np.repeat(X[:, :1], 2, axis=1)
        assert PointCloud(flat, flat, metric).bounds[1] >= cdist(flat, flat, metric).max() - 1e-12


def test_flat_clouds_of_medium_size_compare_all_pairs(rng, monkeypatch):
    tune(monkeypatch, points_module, max_compared_entries_flat=100)
    for d in (2, 3):
        X, Y = (rng.random((n, 1)) * np.arange(1.0, d + 1) for n in (40, 50))
        assert PointCloud(X, Y).bounds[1] == cdist(X, Y, "sqeuclidean").max()


def test_a_middle_cloud_starts_a_large_one_near_its_fixed_point(rng, monkeypatch):
    X, Y = rng.random((900, 2)), 0.2 * rng.normal(size=(800, 2)) + 0.5
    a = np.where(np.arange(900) % 3 == 0, 0.0, 1 / 600)
    tune(monkeypatch, starts, n_cells=32)
    runs = {}
    for large in (10**6, 100):
        tune(monkeypatch, starts, min_points_of_middle=large)
        tune(monkeypatch, starts, n_middle=256)
        runs[large] = epsilot.solve_sample(
            X, Y, a, rtol=0.1, lazy=True, multiscale=True, method="sinkhorn"
        )
        assert runs[large].converged
    assert runs[100].history[0].gap < 0.5 * runs[10**6].history[0].gap


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PointCloud([[1.0, 2]], [[1.0]]), "one space"),
        (lambda: PointCloud([[1.0]], [[1.0]], "manhattan"), "cityblock"),
        (lambda: PointCloud([[np.nan]], [[1.0]]), "not finite"),
        (lambda: PointCloud([[0.0, 0]], [[1.0, 1]], "cosine"), "zero vector"),
        (lambda: PointCloud(np.ones((0, 2)), [[1.0, 1]]), "n >= 1"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(epsilot.InvalidProblem, match=words):
        call()


def furthest(x, Y):
    return np.abs(x - Y).max(axis=1)


@pytest.mark.parametrize("metric", ["sqeuclidean", furthest])
def test_a_cloud_is_pickled_without_what_it_derived(metric):
    X, Y = np.random.default_rng(0).random((2, 40, 2))
    cloud = PointCloud(X, Y, metric).shifted(0.5)
    _ = cloud.bounds, cloud.ctransform_rows(np.zeros(40))
    again = pickle.loads(pickle.dumps(cloud))
    assert type(again) is type(cloud)
    assert set(again.__dict__) <= set(cloud.shifted(0).__dict__)
    np.testing.assert_array_equal(again.block(0, 40), cloud.block(0, 40))


@pytest.mark.parametrize(("fewest", "searches"), [(100, True), (10_000, False)])
def test_a_tiny_cloud_computes_as_the_cloud_does(rng, monkeypatch, fewest, searches):
    cloud = PointCloud(rng.random((40, 2)), rng.random((30, 2)))
    tune(monkeypatch, tree_index, min_searched_entries=fewest)
    tiny = cloud.miniature()
    assert tiny.shape == (2, 2)
    assert tiny.bounds == cloud.bounds
    assert (tiny._index is not None) == (cloud._index is not None) == searches
    np.testing.assert_array_equal(tiny.ctransform_rows(np.zeros(2)), tiny.block(0, 2).min(axis=1))


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 4), (50, 33, 4), (49, 64, 7), (130, 95, 20)])
def test_products_are_rough_costs(rng, metric, n, m, d):
    X, Y = rng.normal(size=(n, d)) + 1e3, rng.normal(size=(m, d)) + 1e3
    cloud = PointCloud(X, Y, metric).shifted(0.25)
    unit = cloud.cost_unit
    found = np.zeros((n, m), np.float32)
    for start, stop, C in cloud.single_blocks(unit):
        found[start:stop] = C
        assert stop == n or (stop - start) % 8 == (stop - start) % 6 == 0  # whole tiles everywhere
    np.testing.assert_allclose(found, cloud.block(0, n) / unit, rtol=0, atol=2e-6)


@pytest.mark.parametrize("lazy", [True, False])
def test_method_and_certificate_share_the_trees(lazy, rng, monkeypatch):
    X, Y = rng.random((2, 150, 2))
    tune(monkeypatch, tree_index, min_searched_entries=1)
    tune(monkeypatch, tree_index, entries_per_visit=0)  # every c-transform searches
    built = []

    def order(points, ask=tree_index._order):
        built.append(len(points))
        return ask(points)

    monkeypatch.setattr(tree_index, "_order", order)
    result = epsilot.solve_sample(X, Y, lazy=lazy, method="auction", rtol=1e-6)
    assert result.converged
    assert built.count(150) == 2  # one tree for each side


def test_copies_with_the_same_points_share_their_trees(rng):
    X, Y = rng.random((2, 20, 2))
    cloud = PointCloud(X, Y, single=True)
    for copy in (cloud.shifted(1.0), cloud.exact, cloud.shifted(-1.0).exact):
        assert copy.embedding.trees is cloud.embedding.trees
    some = cloud.restricted(np.arange(5), np.arange(20))
    assert some.embedding.trees is not cloud.embedding.trees
    tree = some.embedding.tree_of(some.X)
    assert len(tree.points) == 5
