import numpy as np
import pytest


@pytest.fixture
def clouds(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2)) * [2, 1]
    np.savetxt("x.csv", X, delimiter=",")
    np.savetxt("y.csv", X[::-1] @ [[0.6, 0.8], [-0.8, 0.6]] + 0.05 * X, delimiter=",")
    np.savetxt("a.csv", rng.random(25), delimiter=",")
    np.save("m.npy", rng.random((25, 25)))
    return folder


@pytest.mark.usefixtures("clouds")
def test_it_prints_and_writes(run):
    found = run("gromov", "x.csv", "y.csv", "--json", "--out", "o.npz", "--report", "p.html")
    assert found.code == 0
    assert found.json["converged"]
    assert 0 <= found.json["lower_bound"] <= found.json["value"]
    with np.load("o.npz") as written:
        assert float(written["value"]) == found.json["value"]
        assert written["flow"].sum() == pytest.approx(1)
    with open("p.html", encoding="utf-8") as file:
        page = file.read()
    assert "Certified" in page
    assert "epsilot gromov" in page or "solve_gromov" in page
    assert "<script" not in page


@pytest.mark.usefixtures("clouds")
def test_it_takes_weights_costs_and_methods(run):
    found = run(
        "gromov", "x.csv", "y.csv", "--a", "a.csv", "--cost", "m.npy", "--alpha", "0.5", "--rtol",
        "0.3", "--method", "boxes", "--json",
    )  # fmt: skip
    assert found.code == 0
    assert found.json["method"] == "boxes"


@pytest.mark.usefixtures("clouds")
def test_limits_exit_with_one_and_faults_with_two(run):
    stopped = run("gromov", "x.csv", "y.csv", "--max-ot", "10")
    assert stopped.code == 1
    assert "stopped by max_ot" in stopped.out
    assert run("gromov", "x.csv", "y.csv", "--method", "simplex").code == 2
    assert run("gromov", "x.csv", "none.csv").code == 2
    assert run("gromov", "x.csv", "y.csv", "--atol", "-1").code == 2
