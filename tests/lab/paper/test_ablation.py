"""PDASMD in NumPy on many problems at once, with parts switched off."""

import numpy as np
import pytest
from rich.console import Console

from epsilot.errors import InvalidProblem
from epsilot.finite_sum import EntropicTransport
from epsilot_lab.paper import ablation, expectations, method_map
from epsilot_lab.paper.ablation import BASE, VARIANTS, AblationTask, MomentumTask
from epsilot_lab.paper.ensembles import Ensemble, Variant, run
from epsilot_lab.paper.expectations import ExpectationTask
from epsilot_lab.runner import ExperimentSetup


@pytest.fixture(scope="module")
def problems():
    return Ensemble.of_images(3, 6, 0.3)


def loops(problems, **changes):
    found = run(problems, Variant(**changes), np.random.default_rng(0), 300)
    return np.where(found.loops > 0, found.loops, 300)


def test_an_ensemble_meets_the_tolerance_run_by_run(problems):
    found = run(problems, Variant(), np.random.default_rng(0), 500)
    assert found.loops.all()
    assert len(set(found.loops)) > 1
    assert found.loops.max() < 200


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [
        ({"norm": "l2"}, 0.97, 1.03),
        ({"has_proximal_step": False}, 0.97, 1.03),
        ({"norm": "l2", "smoothness": 0.5}, 0.65, 0.76),
        ({"smoothness": 5.0}, 2.1, 2.4),
        ({"tau2": 0.0}, 0.9, 1.1),  # at n = 9; at n = 36 it does not end
        ({"is_reduced": False}, 1.3, 10),
    ],
    ids=str,
)
def test_parts_that_matter_and_parts_that_do_not(problems, changes, low, high):
    assert low < loops(problems, **changes).mean() / loops(problems).mean() < high


def test_averages_are_plans_and_those_of_one_problem_have_its_gradients(problems):
    kept = run(problems, Variant(), np.random.default_rng(1), 3, keeps_plans=True)
    for plan in (kept.sampled, kept.proved):
        np.testing.assert_allclose(plan.sum(axis=2), problems.p)
    dual = EntropicTransport(problems.C[0], problems.p[0], problems.q[0], problems.eta)
    np.testing.assert_allclose(
        problems.p[0][:, None] * problems.softmax(np.zeros((6, 9)))[0], dual.primal(np.zeros(9))
    )


def test_every_variant_is_tabulated(tmp_path):
    page = ablation.run(
        ExperimentSetup(tmp_path, True, 2, 1, Console(stderr=True)), eps=(0.5,), sizes=(4,)
    )
    assert "outer loops" in page.blocks[0].text
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in text for name in VARIANTS)
    assert "n = 4, ε = 0.5, 2 pairs." in text


def test_longer_mirror_steps_and_batches_change_loops_as_the_bound_has_it(problems):
    """Loops are about √(γ/n) and √B times as many; B rows with γ = n / B take the loops of one."""
    base = loops(problems).mean()
    assert loops(problems, gamma=0.5).mean() < 0.75 * base
    assert loops(problems, gamma=1.5).mean() > 1.4 * base
    assert 1.6 * base < loops(problems, batch_size=4).mean() < 2.4 * base
    both = loops(problems, batch_size=3, gamma=0.5).mean()
    assert both == pytest.approx(base, rel=0.1)


def test_idle_momentum_is_counted(tmp_path):
    """Where no extrapolated point is kept, the run is one of exact updates alone."""
    idle = MomentumTask("random", 0.2, 2).line()
    used = MomentumTask("images", 0.02, 1).line()
    assert idle["kept"] == [0, 0]
    assert all(idle["has_ended"])
    assert 0 < used["kept"][0] < used["steps"][0]
    page = ablation.write(tmp_path, [idle, used], "epsilot reproduce ablation")
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "kept in 2 of 3 problems (1 of 2 cells)" in text
    assert page.title


def test_variants_have_the_same_draws():
    first, second = (AblationTask(BASE, 2, 0.5, 2).line() for _ in range(2))
    assert first == second


def test_theorems_in_expectation_at_toy_size(tmp_path):
    first = ExpectationTask("Theorem 1", 4, side=2, eps=0.5, runs=40).line()
    for average in ("proved", "sampled"):
        assert 0 < first[average]["of_mean"] < first["bound"]
        assert first[average]["of_mean"] <= first[average]["mean_of"] + 1e-9
    third = ExpectationTask("Theorem 3", side=2, eps=0.5, runs=40).line()
    assert third["n_stopped"] == 40
    assert 0 < third["share_above"] < 1
    least, middle, _, last = third["stopped"]
    assert least < middle < last
    expectations.write(tmp_path, [first, third], "epsilot reproduce expectations")
    assert "runs are above it" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_the_map_is_drawn_from_lines_and_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(method_map, "METHODS", ("sinkhorn", "pdasmd"))
    console = Console(stderr=True)
    monkeypatch.setattr(
        method_map, "PROBLEMS", {k: method_map.PROBLEMS[k] for k in ("images", "random", "refined")}
    )
    method_map.run(ExperimentSetup(tmp_path, True, 1, 1, console), eps=(0.2,), sizes=(64,))
    before = (tmp_path / "solves.jsonl").read_text(encoding="utf-8")
    assert before.count("\n") == 6
    monkeypatch.delattr(method_map, "solve")
    page = method_map.run(ExperimentSetup(tmp_path, True, 1, 1, console), eps=(0.2,), sizes=(64,))
    assert (tmp_path / "solves.jsonl").read_text(encoding="utf-8") == before
    assert (tmp_path / "map.svg").exists()
    assert "6 solves of 3 problems" in page.blocks[2].text


def test_a_cell_goes_to_the_least_median_that_always_ended():
    def line(method, operations, seed, ended=True):
        own = {"family": "images", "n": 64, "eps": 0.1, "method": method, "seed": seed}
        return own | {"operations": operations, "seconds": 1.0, "has_ended": ended}

    lines = [line("a", 10.0, 0), line("a", 30.0, 1), line("b", 50.0, 0), line("b", 60.0, 1)]
    lines += [line("c", 1.0, 0), line("c", 1.0, 1, ended=False)]
    (found,) = method_map.medians(lines, "operations").values()
    assert found == {"a": 20.0, "b": 55.0}
    assert method_map.winner(found) == ("a", 2.75)


def test_refined_images_keep_the_data():
    _, a, _ = method_map.PROBLEMS["refined"][1](64, 0)
    _, fine, _ = method_map.PROBLEMS["refined"][1](256, 0)
    blocks = fine.reshape(8, 2, 8, 2).sum(axis=(1, 3)).ravel()
    np.testing.assert_allclose(blocks, a)
    with pytest.raises(InvalidProblem, match="multiples of 8"):
        method_map.PROBLEMS["refined"][1](100, 0)
