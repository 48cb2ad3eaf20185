"""Clouds on a cluster: every pass, input and certificate agrees with one process."""

import dataclasses

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem, PointCloud
from epsilot.distributed import Parquet
from epsilot.distributed import PointCloud as Spread
from epsilot.distributed import cluster as cluster_module
from epsilot.geometry import sweeps, tree_index
from tuning import tune

dask_array = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(autouse=True)
def _small_passes_are_sent_too(monkeypatch):
    tune(monkeypatch, cluster_module, max_local_entries=0)


def clouds(n, m, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)), rng.random((m, d)) ** 1.5


def assert_same(found, expected):
    assert (found.value, found.lower_bound) == (expected.value, expected.lower_bound)
    for x, y in zip(found.potentials, expected.potentials, strict=True):
        np.testing.assert_array_equal(x, y)
    assert found.history[-1]._replace(seconds=0) == expected.history[-1]._replace(seconds=0)


#: name: what a geometry answers
PASSES = {
    "lse_rows": lambda C, f, g: C.lse_rows(g, 0.1),
    "lse_cols": lambda C, f, g: C.lse_cols(f, 0.1),
    "rough": lambda C, f, g: C.rough.lse_rows(g, 0.1),
    "apply_cols": lambda C, f, g: C.apply_cols(f, g, 0.1, np.cos(f)),
    "price_rows": lambda C, f, g: np.stack(C.price_rows(f, g, 0.1, g + 2, g)),
    "matvec": lambda C, f, g: C.matvec(g),
    "ctransform_rows": lambda C, f, g: C.ctransform_rows(g),
    "ctransform_cols": lambda C, f, g: C.ctransform_cols(f),
    "bounds": lambda C, f, g: np.array(C.bounds),
    "block": lambda C, f, g: C.block(3, 5),
    "entries": lambda C, f, g: C.entries(np.array([70, 3, 3]), np.array([0, 70, 8])),
    "digest": lambda C, f, g: np.array(C.digest()),
}


@pytest.mark.parametrize(
    ("d", "metric", "wide"),
    [(2, "euclidean", 1 << 20), (3, "sqeuclidean", 32), (5, "cityblock", 32), (5, "cosine", 32)],
)
def test_passes_have_the_bits_of_one_process(client, monkeypatch, tmp_path, d, metric, wide):
    tune(monkeypatch, sweeps, max_tile_columns=wide)
    X, Y = clouds(71, 80, d)
    np.save(tmp_path / "Y.npy", Y)
    there = Spread(X, tmp_path / "Y.npy", metric, client, single=True).shifted(0.25)
    here = PointCloud(X, Y, metric, single=True).shifted(0.25)
    assert there.X.size == (0 if d > 3 else X.size), "points of many coordinates stay away"
    rng = np.random.default_rng(1)
    f, g = rng.random(71), rng.random(80)
    for name, answer in PASSES.items():
        np.testing.assert_array_equal(answer(there, f, g), answer(here, f, g), err_msg=name)


@pytest.mark.parametrize(("d", "name"), [(2, "ClusterCloud"), (5, "RemoteCloud")])
def test_clouds_are_constructed_from_their_arguments(client, tmp_path, d, name):
    X, Y = clouds(20, 15, d)
    np.save(tmp_path / "Y.npy", Y)
    there = Spread(X, tmp_path / "Y.npy", "sqeuclidean", client)
    assert type(there).__name__ == name
    other = type(there)(there._sides, "cityblock", single=True)
    g = np.random.default_rng(1).random(15)
    assert other.single
    np.testing.assert_array_equal(
        other.ctransform_rows(g), PointCloud(X, Y, "cityblock").ctransform_rows(g)
    )


def test_tiles_of_columns_are_combined_in_order(monkeypatch):
    X, Y = clouds(40, 100, 2)
    rng = np.random.default_rng(1)
    f, g = rng.random(40), rng.random(100)
    whole = {name: answer(PointCloud(X, Y), f, g) for name, answer in PASSES.items()
             if name not in ("entries", "digest")}  # fmt: skip
    tune(monkeypatch, sweeps, max_tile_columns=32)
    for name, expected in whole.items():
        found = PASSES[name](PointCloud(X, Y), f, g)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)


#: name: a cloud in another form
KINDS = {
    "numpy": lambda X, folder: X,
    "list": lambda X, folder: X.tolist(),
    "npy": lambda X, folder: np.save(folder / "X.npy", X) or folder / "X.npy",
    "mapped": lambda X, folder: (
        np.save(folder / "X.npy", np.asfortranarray(X)) or np.load(folder / "X.npy", mmap_mode="r")
    ),
    "a slice of one": lambda X, folder: (
        np.save(folder / "X.npy", np.concatenate([X, X]))
        or np.load(folder / "X.npy", mmap_mode="r")[len(X) :]
    ),
    "dask": lambda X, folder: dask_array.from_array(X, chunks=(17, 1)),
    "zarr": lambda X, folder: stored(X, folder),
    "a zarr file": lambda X, folder: str(stored(X, folder) and folder / "X.zarr"),
    "parquet": lambda X, folder: table(X, folder),
}


def stored(X, folder):
    array = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(13, 2), dtype=X.dtype)
    array[:] = X
    return array


def table(X, folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"label": np.arange(len(X)), **{f"x{k}": X[:, k] for k in range(X.shape[1])}}
    parquet.write_table(pa.table(columns), folder / "X.parquet", row_group_size=19)
    return Parquet(folder / "X.parquet", [f"x{k}" for k in range(X.shape[1])])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input(client, tmp_path, monkeypatch, kind):
    tune(monkeypatch, sweeps, max_tile_columns=32)
    X, Y = clouds(50, 40, 4)
    there = Spread(KINDS[kind](X, tmp_path), Y, client=client)
    here = PointCloud(X, Y)
    g = np.random.default_rng(1).random(40)
    np.testing.assert_array_equal(there.ctransform_rows(g), here.ctransform_rows(g))
    assert there.digest() == here.digest()


#: method, dimension, options
SOLVES = [
    ("sinkhorn", 2, {"rtol": 0.2, "max_iter": 3, "multiscale": False}),
    ("sinkhorn", 5, {"reg": 0.2, "max_iter": 2}),
    ("sinkhorn", 5, {"mass": 0.5, "rtol": 0.5, "max_iter": 1}),
    ("unbalanced_sinkhorn", 2, {"unbalanced": 1.0, "rtol": 0.5, "max_iter": 1}),
    ("auction", 2, {"rtol": 1e-9}),
    ("restricted_simplex", 3, {"rtol": 1e-9}),
]


@pytest.mark.parametrize(("method", "d", "options"), SOLVES)
def test_solvers_run_unchanged(client, method, d, options):
    X, Y = clouds(60, 50, d)
    a = np.random.default_rng(1).dirichlet(np.ones(60))
    a[7] = 0.0
    how = {"method": method, "on_limit": "ignore", "normalize": True, **options}
    there = epsilot.solve_sample(dask_array.from_array(X), Y, a, client=client, **how)
    assert_same(there, epsilot.solve_sample(X, Y, a, lazy=True, **how))


def test_workers_search_trees(client, monkeypatch):
    from epsilot.distributed import passes as cluster_passes

    sent = []
    search = cluster_passes.ClusterSearch._search
    sizes = dataclasses.replace(cluster_passes.SIZES, min_searched_rows=50)
    monkeypatch.setattr(cluster_passes, "SIZES", sizes)
    tune(monkeypatch, tree_index, min_searched_entries=1000)
    tune(monkeypatch, tree_index, entries_per_visit=0)
    monkeypatch.setattr(
        cluster_passes.ClusterSearch,
        "_search",
        lambda self, *args: sent.append(args[2]) or search(self, *args),
    )
    X, Y = clouds(90, 80, 2)
    there = epsilot.solve_sample(X, Y, client=client, method="auction", rtol=1e-9)
    assert {*sent} == {cluster_passes.least_columns_of, cluster_passes.ctransform_of}
    assert_same(there, epsilot.solve_sample(X, Y, lazy=True, method="auction", rtol=1e-9))


def test_remote_points_are_solved_by_sinkhorn(client, tmp_path):
    X, Y = clouds(30, 20, 5)
    np.save(tmp_path / "X.npy", X)
    result = epsilot.solve_sample(
        tmp_path / "X.npy", Y, client=client, rtol=0.5, max_iter=1, on_limit="ignore"
    )
    assert "far away" in result.choice
    with pytest.raises(InvalidProblem, match="restricted_simplex"):
        epsilot.solve_sample(tmp_path / "X.npy", Y, client=client, method="restricted_simplex")


def test_a_checkpoint_of_one_process_is_resumed_on_a_cluster(client, tmp_path):
    X, Y = clouds(60, 50, 2)
    path = tmp_path / "run.npz"
    how = {"method": "sinkhorn", "rtol": 1e-6, "on_limit": "ignore"}
    epsilot.solve_sample(X, Y, lazy=True, checkpoint=path, max_iter=2, **how)
    there = epsilot.solve_sample(X, Y, client=client, resume=path, max_iter=4, **how)
    assert_same(there, epsilot.solve_sample(X, Y, lazy=True, resume=path, max_iter=4, **how))


def test_workers_are_killed_in_the_middle_of_a_run(client, kill_later):
    X, Y = clouds(3000, 3000, 2)
    how = {"method": "sinkhorn", "rtol": 1e-9, "on_limit": "ignore", "max_iter": 6}
    how["multiscale"] = False
    kill_later(0.3, 1)
    kill_later(1.0, 2)
    there = epsilot.solve_sample(X, Y, client=client, **how)
    assert_same(there, epsilot.solve_sample(X, Y, lazy=True, **how))


BAD = np.array([[0.0, 1.0], [np.nan, 0.0]])


@pytest.mark.parametrize(
    ("X", "metric", "lazy", "sentence"),
    [
        (BAD, "euclidean", None, r"X_a\[1\] has a coordinate that is not finite"),
        ("points.csv", "euclidean", None, "must be .npy or .zarr"),
        ("absent.npy", "euclidean", None, "cannot be read"),
        (np.zeros((3, 3)), "euclidean", None, "both clouds must live in one space"),
        (np.zeros((3, 2)), "canberra", None, "on a cluster it must be one of sqeuclidean"),
        (np.zeros((3, 2)), lambda x, Y: Y[:, 0], None, "is a function; .* must be one of"),
        (np.zeros((3, 2)), "euclidean", False, "leave lazy out"),
        (Parquet("absent.parquet", ["x", "y"]), "euclidean", None, "cannot be read as Parquet"),
        (dask_array.from_array(BAD), "euclidean", None, r"X_a\[1\] has a coordinate"),
    ],
    ids=range(9),
)
def test_invalid_input_is_one_sentence(client, X, metric, lazy, sentence):
    with pytest.raises(InvalidProblem, match=sentence):
        epsilot.solve_sample(X, np.ones((4, 2)), metric=metric, lazy=lazy, client=client)


def test_invalid_points_that_only_workers_read(client, tmp_path):
    X = np.ones((8, 5))
    X[6, 2] = np.inf
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(InvalidProblem, match=r"X_b\[6\] has a coordinate that is not finite"):
        Spread(np.ones((3, 5)), tmp_path / "X.npy", client=client)


@pytest.mark.parametrize("d", [2, 5])
def test_a_plan_times_a_dask_array_is_one(client, tmp_path, d):
    X, Y = clouds(60, 50, d)
    np.save(tmp_path / "X.npy", X)
    how = {"method": "sinkhorn", "rtol": 0.5, "max_iter": 1, "on_limit": "ignore"}
    there = epsilot.solve_sample(tmp_path / "X.npy", Y, client=client, **how).plan_operator
    here = epsilot.solve_sample(X, Y, lazy=True, **how).plan_operator
    rng = np.random.default_rng(1)
    for plan, own, size in ((there, here, 50), (there.T, here.T, 60)):
        V = rng.random((size, 2))
        for U in (V, V[:, 0]):
            found = plan @ dask_array.from_array(U, chunks=17)
            assert isinstance(found, dask_array.Array)
            np.testing.assert_array_equal(client.compute(found).result(), own @ U)
    lazy = here @ dask_array.from_array(V[:50], chunks=(17, 1))
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), here @ V[:50])
    with pytest.raises(InvalidProblem, match="must be a vector of 50"):
        there @ dask_array.zeros(7)
