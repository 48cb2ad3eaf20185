"""The benchmark of first passes for the restricted simplex, at toy size."""

import numpy as np
from scipy.special import softmax

from epsilot.geometry import PointCloud
from epsilot.problems.problem import make_problem
from epsilot_lab.studies import first_passes


def test_gradient_steps_equal_their_formula(rng):
    C, q = rng.random((6, 5)), rng.dirichlet(np.ones(5))
    rows, inv_etas = rng.permutation(6), rng.uniform(3, 9, 6)
    steps, shares = rng.random(6), rng.random(6)
    g, mean = np.zeros(5), np.zeros(5)
    for i, inv_eta, step, share in zip(rows, inv_etas, steps, shares, strict=True):
        g += step * (q - softmax((g - C[i]) * inv_eta))
        mean += share * (g - mean)
    found, found_mean, weights = np.zeros((3, 5), np.float32)
    single = (x.astype(np.float32) for x in (q, inv_etas, steps, shares))
    first_passes.gradient_steps(C.astype(np.float32), rows, *single, found, found_mean, weights)
    np.testing.assert_allclose(found, g, atol=1e-5)
    np.testing.assert_allclose(found_mean, mean, atol=1e-5)


def test_gradient_epochs_are_the_same_lazy_and_dense(rng):
    cloud = PointCloud(rng.random((90, 2)), rng.random((70, 2)), single=True)
    p = rng.dirichlet(np.ones(90))
    runs = [
        first_passes.sgd(2, make_problem(M, p, None), np.random.default_rng(3))
        for M in (cloud, cloud.block(0, 90))
    ]
    np.testing.assert_allclose(runs[0][1], runs[1][1], atol=1e-4)
    assert (runs[0][0][:, None] + runs[0][1] <= cloud.block(0, 90) + 1e-12).all()


def test_every_start_is_certified_at_toy_size(tmp_path, capsys):
    out = tmp_path / "table.md"
    first_passes.main(["--quick", "--problems", "2-d lazy", "images dense", "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    names = [start.name for start in first_passes.STARTS]
    assert text.count("### ") == 2
    assert all(f"| {name} |" in text for name in names)
    assert text.count("\n| ") == 2 * (len(names) + 2) - 2  # images have no coarse cells
    assert "not reached" not in text
    assert "images dense, n = 256" in capsys.readouterr().out
