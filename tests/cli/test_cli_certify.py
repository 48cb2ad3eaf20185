import numpy as np
import ot
import pytest


@pytest.fixture
def solved(folder):
    """Save POT's exact and entropic answers; return the optimal cost."""
    M = np.load("M.npy")
    a, b = np.full(6, 1 / 6), np.full(8, 1 / 8)
    plan, log = ot.emd(a, b, M, log=True)
    np.save("plan.npy", plan)
    np.save("f.npy", log["u"])
    np.savetxt("g.csv", log["v"])
    np.save("rough.npy", np.exp(-M / 0.1) / 48)
    return log["cost"]


@pytest.mark.parametrize(
    ("answer", "is_tight", "is_feasible"),
    [
        (["--plan", "plan.npy"], True, True),
        (["--plan", "plan.npy", "--potentials", "f.npy", "g.csv"], True, True),
        (["--potentials", "f.npy", "g.csv"], True, True),
        (["--plan", "rough.npy"], False, False),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_certify_bounds_the_optimum(run, solved, answer, is_tight, is_feasible):
    found = run("certify", "--cost", "M.npy", *answer, "--json")
    assert found.code == 0
    bracket = found.json
    assert bracket["lower"] - 1e-12 <= solved <= bracket["upper"] + 1e-12
    assert (bracket["gap"] < 1e-3) == is_tight
    assert bracket["is_feasible"] == is_feasible
    assert bracket["shape"] == [6, 8]


@pytest.mark.usefixtures("solved")
def test_certify_prints_plain_lines(run):
    done = run("certify", "--cost", "M.npy", "--plan", "rough.npy")
    assert done.out.startswith("Certificate\n  upper bound: ")
    assert "not feasible, rounded" in done.out


@pytest.mark.usefixtures("solved")
def test_certify_rescales_weights_only_with_normalize(run):
    weights = ("certify", "--cost", "M.npy", "--a", "a2.npy", "--b", "b.csv", "--plan", "plan.npy")
    assert run(*weights).code == 2
    assert run(*weights, "--normalize").code == 0


def test_certify_rejects_the_result_of_another_problem(run):
    run("solve", "--cost", "M.npy", "--out", "r.npz")
    np.save("other.npy", 1 + np.load("M.npy") ** 2)
    done = run("certify", "--cost", "other.npy", "--result", "r.npz")
    assert done.code == 2
    assert "another problem" in done.err
