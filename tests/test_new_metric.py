"""Two metrics are added to a copy of the package, as rows of the table and nowhere else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[1] / "src" / "epsilot"

FUNCTIONS = """
def _cubed(x, y):
    return abs(x - y) * abs(x - y) * abs(x - y)


def _cube_root(total):
    return total ** (1 / 3)


def _cubes_slope(difference, cost):
    distance = cost()
    ratio = np.divide(difference, distance, out=np.zeros_like(distance), where=distance > 0)
    return ratio * np.abs(ratio)


def _farthest_slope(difference, cost):
    return np.where(np.abs(difference) == cost(), np.sign(difference), 0.0)


"""

ROWS = """
    "cubes": Metric(
        code=6, degree=1, power=3, term=_cubed, join=_add, finish=_cube_root, slope=_cubes_slope
    ),
    "farthest": Metric(
        code=7, degree=1, power=1, term=_absolute, join=_larger, finish=_same,
        is_convex=True, is_distance=True, slope=_farthest_slope,
    ),
"""

TABLE = "# -- the table "
LAST_ROW = '    "cosine": Metric('


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return a folder with a copy of the package whose table has two rows more."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(SOURCE, folder / "epsilot", ignore=shutil.ignore_patterns("__pycache__"))
    table = folder / "epsilot" / "metrics.py"
    text = table.read_text()
    assert text.count(TABLE) == text.count(LAST_ROW) == 1
    text = text.replace(TABLE, FUNCTIONS + TABLE).replace(LAST_ROW, ROWS + LAST_ROW)
    table.write_text(text)
    return folder


def test_a_row_of_the_table_is_all_that_a_metric_needs(package):
    variables = os.environ | {"PYTHONPATH": str(package)}
    variables.pop("NUMBA_CACHE_DIR", None)  # compiled kernels hold the table: beside the copy
    subprocess.run([sys.executable, __file__, str(package)], env=variables, check=True)


# -- what the process with the larger table does ---------------------------------------------


def check(metric, reference):
    """Solve with a metric in every way and compare with costs that are given as a matrix."""
    import epsilot
    from epsilot.geometry import PointCloud

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(50, 3)) + 1
    M = reference(X, Y)
    best = epsilot.solve(M, rtol=1e-9).value
    cloud = PointCloud(X, Y, metric)
    np.testing.assert_allclose(cloud.block(0, 40), M, rtol=1e-14)
    assert epsilot.solve_sample(X, Y, metric=metric, rtol=1e-9).value == pytest.approx(best)
    for method in ("auction", "restricted_simplex", "sinkhorn"):
        rtol = 1e-2 if method == "sinkhorn" else 1e-6
        found = epsilot.solve_sample(X, Y, metric=metric, lazy=True, method=method, rtol=rtol)
        assert found.lower_bound <= best * (1 + 1e-12)
        assert best <= found.value * (1 + 1e-12)
        assert found.gap <= rtol * found.value
    assert (
        epsilot.certify(cloud, plan=found.plan, potentials=found.potentials).gap
        <= rtol * found.value
    )
    batch = epsilot.solve_sample_batch([X[:9]] * 2, [Y[:9]] * 2, metric=metric, rtol=1e-9)
    np.testing.assert_allclose(batch.value, epsilot.solve(M[:9, :9], rtol=1e-9).value)
    check_line(metric, X[:, 0], Y[:, 0])
    check_trees(metric, reference)
    check_gradients(metric)


def check_line(metric, x, y):
    """Compare points on a line with the distances, which both metrics are there."""
    import epsilot

    best = epsilot.solve_sample(x, y, metric="euclidean").value
    assert epsilot.solve_sample(x, y, metric=metric, rtol=1e-9).value == pytest.approx(best)


def check_trees(metric, reference):
    """Compare c-transforms of clouds that trees search with minima over all columns."""
    from epsilot.geometry import PointCloud

    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(2, 3000, 2))
    g = 0.5 * Y[:, 0] + 0.01 * rng.normal(size=3000)
    cloud = PointCloud(X, Y, metric)
    assert cloud._index.ctransform(False, -g) is not None  # by a tree, without a pass
    M = cloud.block(0, 3000)
    np.testing.assert_array_equal(cloud.ctransform_rows(g), (M - g).min(axis=1))
    np.testing.assert_array_equal(cloud.ctransform_cols(g), (M - g[:, None]).min(axis=0))


def check_gradients(metric):
    """Compare slopes with differences of values."""
    try:
        import torch

        import epsilot.torch
    except ImportError:  # the rest of the table has been checked
        return
    rng = np.random.default_rng(2)
    x, y = (torch.tensor(z, requires_grad=True) for z in rng.normal(size=(2, 6, 3)))
    epsilot.torch.transport_cost(x, y, metric=metric, rtol=1e-9).backward()
    for points in (x, y):
        for place in ((0, 0), (3, 1), (5, 2)):
            step = torch.zeros_like(points)
            step[place] = 1e-6
            ends = [
                epsilot.torch.transport_cost(
                    x + sign * step if points is x else x,
                    y + sign * step if points is y else y,
                    metric=metric,
                    rtol=1e-9,
                ).item()
                for sign in (1, -1)
            ]
            slope = (ends[0] - ends[1]) / 2e-6
            assert points.grad[place].item() == pytest.approx(slope, abs=1e-5)


def check_names():
    """Find both names wherever metrics are listed."""
    import epsilot
    from epsilot.cli.options import Metric

    for name in ("cubes", "farthest"):
        assert name in Metric.__metadata__[0].help
        with pytest.raises(epsilot.InvalidProblem, match=name):
            epsilot.solve_sample([0.0], [1.0], metric="unknown")


if __name__ == "__main__":
    from scipy.spatial.distance import cdist

    import epsilot

    assert Path(epsilot.__file__).is_relative_to(sys.argv[1])
    check("cubes", lambda X, Y: cdist(X, Y, "minkowski", p=3))
    check("farthest", lambda X, Y: cdist(X, Y, "chebyshev"))
    check_names()
