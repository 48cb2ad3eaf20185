"""PDASMD in NumPy on many problems at once, with parts switched off."""

import numpy as np
import pytest
from rich.console import Console

from epsilot.finite_sum import EntropicTransport
from epsilot_lab.paper import ablation
from epsilot_lab.paper.ablation import BASE, VARIANTS, AblationTask
from epsilot_lab.paper.ensembles import Ensemble, Variant, run


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
    page = ablation.run(tmp_path, True, 2, 1, Console(stderr=True), eps=(0.5,), sizes=(4,))
    assert "outer loops" in page.blocks[0].text
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert all(f"| {name} |" in text for name in VARIANTS)
    assert "n = 4, ε = 0.5, 2 pairs." in text


def test_variants_have_the_same_draws():
    first, second = (AblationTask(BASE, 2, 0.5, 2).line() for _ in range(2))
    assert first == second
