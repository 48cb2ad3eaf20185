"""A slice of the campaign with fixed seeds, and the campaign's own machinery."""

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stand_ins
from scipy.optimize import brentq
from scipy.sparse import csr_array

import epsilot
from epsilot.engine import interrupts
from epsilot.problems.plan import Explicit, Plan
from epsilot_lab.fuzz import (
    arcs,
    batches,
    campaign,
    gromov,
    limits,
    problems,
    proofs,
    resume,
    solves,
)

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "campaign.py"
#: part -> cases, about a minute in all
SLICE = {
    "prices": 40,
    "arcs": 60,
    "graphs": 40,
    "metrics": 20,
    "gromov": 10,
    "saved": 20,
    "batches": 20,
    "barycenters": 60,
    "losses": 60,
    "estimators": 40,
    "cluster": 4,
    "solves": 120,
    "scales": 60,
    "resume": 60,
    "kills": 4,
    "abuse": 300,
    "commands": 50,
}


#: part -> extras it needs
EXTRAS = {"losses": ("torch", "jax"), "cluster": ("distributed",), "estimators": ("sklearn",)}


@pytest.mark.parametrize("part", SLICE)
def test_a_slice_of_the_campaign_shows_no_defect(part):
    for extra in EXTRAS.get(part, ()):
        pytest.importorskip(extra)
    drawn = (campaign.Case(part, number) for number in range(SLICE[part]))
    lines = list(campaign.run_cases(drawn, jobs=1, hang_seconds=600, cache=None))
    assert len(lines) == SLICE[part]
    assert {line["case"]: line["defects"] for line in lines if "defects" in line} == {}


# -- the bracket of a solve --------------------------------------------------------------------


def two_by_two(reg):
    """Return a 2 x 2 entropic problem and its optimum, by a root of one equation."""
    C, a, b = np.array([[0.3, 1.0], [0.7, 0.1]]), np.array([0.4, 0.6]), np.array([0.7, 0.3])

    def plan(x):
        return np.array([[x, 0.4 - x], [0.7 - x, x - 0.1]])

    def slope(x):
        X = plan(x)
        return (C[0, 0] - C[0, 1] - C[1, 0] + C[1, 1]) / reg + np.log(
            X[0, 0] * X[1, 1] / X[0, 1] / X[1, 0]
        )

    X = plan(brentq(slope, 0.1 + 1e-15, 0.4 - 1e-15, xtol=1e-16))
    return C, a, b, (C * X).sum() + reg * (X * np.log(X)).sum()


@pytest.mark.parametrize("reg", [10.0, 1.0, 0.1, 0.05])
def test_the_bracket_holds_the_entropic_optimum(reg):
    C, a, b, value = two_by_two(reg)
    kind = proofs.FuzzKind(reg=reg)
    low, high = proofs.bracket(kind, *(np.longdouble(x) for x in (C, a, b)))
    assert low - 1e-12 <= value <= high + 1e-12
    assert high - low <= 2e-6 * max(reg, 1.0)


# -- the checks --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solved():
    problem = problems.ordinary(np.random.default_rng(5))
    return problem, epsilot.solve(problem.M, problem.a, problem.b, eps=0.05, method="sinkhorn")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: {}, ""),
        (lambda r: {"lower_bound": r.value + 0.1}, "wrong lower bound"),
        (lambda r: {"value": r.lower_bound - 0.1}, "wrong upper bound"),
        (lambda r: {"value": np.inf}, "not finite"),
        (lambda r: {"lower_bound": r.lower_bound - 0.1}, "converged with gap"),
        (lambda r: {"value_linear": r.value_linear + 1e-9}, "value_linear"),
        (lambda r: {"potentials": (r.potentials[0] + 1e-9, r.potentials[1])}, "exceed the cost"),
        (lambda r: {"plan_operator": r.plan_operator.scaled(1 + 1e-9)}, "marginals: rows off"),
        (lambda r: {"method": "exact", "plan_operator": Plan(Explicit(r.plan))}, "nonzeros"),
        (lambda r: {"history": [r.history[0]._replace(lower=9.0)]}, "of record 0: 9.0 above"),
        (lambda r: {"history": [r.history[0]._replace(upper=-9.0)]}, "of record 0: -9.0 below"),
    ],
)
def test_a_false_claim_is_found(solved, change, words):
    problem, result = solved
    claimed = epsilot.Result(**{**fields(result), **change(result)})
    found = solves.drawn_defects(claimed, problem, {"eps": 0.05})
    assert any(words in text for text in found) if words else found == []


def fields(result):
    return {name: getattr(result, name) for name in epsilot.Result.__dataclass_fields__}


@pytest.mark.parametrize(
    ("error", "is_proper"),
    [
        (epsilot.InvalidProblem("eps is -1; it must be a positive finite number."), True),
        (epsilot.InvalidProblem("no"), False),
        (epsilot.InvalidProblem("eps is -1;\nit must be a positive number."), False),
        (MemoryError("a plan takes 8 GiB; the limit is 4 GiB (use plan_operator)."), True),
        (MemoryError(), False),
        (np._core._exceptions._ArrayMemoryError((9,), np.dtype(float)), False),
        (ZeroDivisionError("float division by zero"), False),
    ],
)
def test_only_documented_errors_in_one_sentence_are_proper(error, is_proper):
    assert (problems.error_defects(error) == []) == is_proper


@pytest.mark.parametrize("way", resume.WAYS)
def test_every_way_to_spoil_a_file_changes_it(way, tmp_path):
    path = tmp_path / "r.npz"
    epsilot.solve(np.eye(4), eps=0.1, method="sinkhorn").save(path)
    before = path.read_bytes()
    for seed in range(8):
        resume.WAYS[way](np.random.default_rng(seed), path)
        if path.read_bytes() != before:
            return
    pytest.fail("never changed")


# -- the machinery -----------------------------------------------------------------------------


def draw(count):
    return (campaign.Case("solves", number) for number in range(count))


@pytest.mark.parametrize(
    ("stand_in", "ending", "hang_seconds"),
    [("crash", "crashed", 60.0), ("hang", "hung", 3.0), ("answer", "certified", 60.0)],
)
def test_crashes_and_hangs_are_counted_and_the_run_goes_on(stand_in, ending, hang_seconds):
    serve = getattr(stand_ins, stand_in)
    lines = list(campaign.run_cases(draw(2), 2, hang_seconds, cache=None, serve=serve))
    assert sorted(line["case"] for line in lines) == ["solves-0", "solves-1"]
    assert {line["ending"] for line in lines} == {ending}


def test_a_case_is_drawn_from_its_name_alone():
    case = campaign.Case.named("abuse-17-3")
    assert case == campaign.Case("abuse", 17, 3)
    assert campaign.Case.named(case.key) == case
    assert campaign.run_case(case) | {"seconds": 0} == campaign.run_case(case) | {"seconds": 0}
    first, other = (campaign.Case("abuse", 17, s).generator().random() for s in (3, 4))
    assert first != other


def test_a_second_call_goes_on_where_the_first_ended(tmp_path):
    def run(count):
        command = [
            sys.executable,
            str(SCRIPT),
            "--parts",
            "abuse",
            "--cases",
            str(count),
            "--jobs",
            "1",
            "--store",
            "c.jsonl",
            "--out",
            "summary",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return (tmp_path / "c.jsonl").read_text()

    first = run(3)
    second = run(5)
    assert second.startswith(first)
    assert second.count("\n") == 5
    assert "5 cases" in (tmp_path / "summary" / "summary.md").read_text()


def test_the_summary_counts_defects_by_kind():
    lines = [
        {
            "case": f"solves-{k}",
            "part": "solves",
            "kind": "dense",
            "method": "exact",
            "ending": "certified",
            "events": {"SIGKILL": 1},
            "problems": 200,
            "defects": [f"gap 1e-{k} above {k}"],
        }
        for k in range(3)
    ]
    found = campaign.counts(lines)
    assert found["events"] == {"SIGKILL": 3}
    assert found["problems"] == {"solves": 600}
    assert [(row["defect"], row["count"]) for row in found["defects"]] == [("gap # above #", 3)]


# -- bounds proved by plans and potentials -----------------------------------------------------

KINDS = {
    "balanced": proofs.FuzzKind(),
    "reg": proofs.FuzzKind(reg=0.1),
    "partial": proofs.FuzzKind("partial", mass=0.6),
    "partial with reg": proofs.FuzzKind("partial", mass=0.6, reg=0.1),
    "kl": proofs.FuzzKind("kl", 0.4, 0.7),
    "kl, one side kept": proofs.FuzzKind("kl", 0.4, np.inf),
    "kl with reg": proofs.FuzzKind("kl", 0.4, 0.7, reg=0.1),
    "kl per point": proofs.FuzzKind("kl", np.array([0.4, np.inf, 0.1, 2.0, 0.3]), 0.7),
    "tv": proofs.FuzzKind("tv", 0.2, 0.3),
    "tv per point": proofs.FuzzKind("tv", 0.2, np.array([0.3, np.inf, 0.1, 5.0])),
    "tv with reg": proofs.FuzzKind("tv", 0.2, 0.3, reg=0.1),
}


@pytest.fixture(scope="module", params=KINDS)
def claimed(request):
    rng = np.random.default_rng(3)
    C, a, b = rng.random((5, 4)), rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4))
    kind = KINDS[request.param]
    tight = {"rtol": 1e-9} if kind.reg is None else {"tol": 1e-10}
    result = epsilot.solve(C, a, b, **kind.keywords, **tight)
    return kind, tuple(np.longdouble(x) for x in (C, a, b)), result


def claim_of(result, **changes):
    given = {
        "value": result.value,
        "lower": result.lower_bound,
        "plan": result.plan,
        "potentials": result.potentials,
    }
    return proofs.BoundClaim(**{**given, **changes})


def lowered(result):
    f, g = result.potentials
    return {"potentials": (f - 0.05 * (np.arange(f.size) == 0), g)}


def test_true_bounds_show_no_defect(claimed):
    kind, problem, result = claimed
    assert list(proofs.claim_defects(kind, *problem, claim_of(result))) == []
    assert list(proofs.result_defects(result, kind, *problem)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: {"value": r.value - 1e-6}, "wrong upper bound"),
        (lambda r: {"value": r.value + 1e-6}, "not that of the plan"),
        (lambda r: {"lower": r.lower_bound + 1e-6}, "above what the potentials prove"),
        (lambda r: {"lower": r.value + 1e-6}, "wrong lower bound"),
        (lambda r: {"value": r.lower_bound - 1e-9}, "above the value"),
        (lambda r: {"value": np.nan}, "not finite"),
        (lambda r: {"plan": np.roll(r.plan, 1, axis=0)}, "marginals|of the plan"),
        (lambda r: {"plan": -r.plan}, "negative"),
        (lowered, "potential"),
        (lambda r: {"potentials": (np.nan * r.potentials[0], r.potentials[1])}, "NaN"),
    ],
)
def test_a_bound_that_its_plan_and_potentials_do_not_prove_is_found(claimed, change, words):
    kind, problem, result = claimed
    claim = claim_of(result, **change(result))
    found = list(proofs.claim_defects(kind, *problem, claim))
    assert any(re.search(words, text) for text in found)


def test_a_negative_gap_called_converged_is_found(claimed):
    kind, problem, result = claimed
    wrong = replace(result, value=result.lower_bound - 1e-9, converged=True)
    assert "negative gap" in " ".join(proofs.target_defects(wrong, kind, *problem, {"rtol": 1.0}))


def test_an_operator_unlike_the_plan_is_found(claimed):
    kind, problem, result = claimed
    wrong = SimpleNamespace(
        plan=result.plan,
        plan_operator=result.plan_operator.scaled(1 + 1e-9),
        value=result.value,
        value_linear=result.value_linear,
        lower_bound=result.lower_bound,
        potentials=result.potentials,
    )
    found = " ".join(proofs.result_defects(wrong, kind, *problem))
    assert "plan and its products differ" in found


@pytest.mark.parametrize("price", [1e-300, 1e-6, 1.0, 1e6, 1e15, 1e300])
def test_divergences_agree_with_decimals_of_400_digits(price):
    rng = np.random.default_rng(0)
    w = np.longdouble(rng.random(5))
    r = w * (1 + np.longdouble(10) ** -np.arange(0, 20, 4) * rng.choice([-0.5, 0.5], 5))
    x = np.longdouble(rng.normal(size=5) * min(price, 1.0))
    with localcontext() as context:
        context.prec = 400  # of which a price of 1e300 takes 300
        exact = [Decimal(str(v)) for v in (*r, *w, *x)]
        R, W, X = exact[:5], exact[5:10], exact[10:]
        divergence = sum(p * (p / q).ln() - p + q for p, q in zip(R, W, strict=True))
        cost = Decimal(price)
        gain = sum(cost * q * (1 - (-z / cost).exp()) for q, z in zip(W, X, strict=True))
    assert abs(float(proofs.kl_terms(r, w).sum()) / float(divergence) - 1) < 1e-15
    found = proofs.kl_gain(np.longdouble(price), w, x).sum()
    assert abs(float(found) / float(gain) - 1) < 1e-15


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"value": 2.1}, "not that of the flow"),
        ({"lower_bound": 2.0 + 1e-6}, "above"),
        ({"flows": csr_array(np.eye(3, k=1) * 0.9)}, "misses masses"),
        ({"flows": csr_array(np.eye(3, k=2))}, "no edge|capacity"),
        ({"potentials": np.array([0.5, 0.0, 0.0])}, "what the potentials prove"),
    ],
)
def test_a_false_claim_on_a_graph_is_found(change, words):
    costs = csr_array(np.eye(3, k=1))
    result = epsilot.solve_graph(costs, [1, 0, 0], [0, 0, 1])
    i, j = costs.nonzero()
    graph = arcs.Graph(costs, {}, i, j, costs.data, np.full(2, np.inf), "")
    claimed = replace(result, **change)
    surplus = np.longdouble([1, 0, -1])
    found = " ".join(arcs.flow_defects(claimed, graph, surplus, np.longdouble(1)))
    assert re.search(words, found) if words else found == ""


def test_a_cut_that_proves_nothing_is_found():
    C = np.array([[1.0, np.inf], [1.0, 1.0]])
    a, b = np.array([0.7, 0.3]), np.array([0.4, 0.6])
    with pytest.raises(epsilot.Infeasible) as caught:
        epsilot.solve(C, a, b)
    cut = caught.value
    assert list(arcs.cut_defects(cut, proofs.FuzzKind(), C, a, b)) == []
    for false in (
        epsilot.Infeasible("", cut.sources, cut.targets, 2 * cut.excess),
        epsilot.Infeasible("", np.array([1]), np.array([0]), cut.excess),
        epsilot.Infeasible("", cut.sources, np.array([0, 1]), cut.excess),
    ):
        assert list(arcs.cut_defects(false, proofs.FuzzKind(), C, a, b))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ""),
        ({"value": 1.01}, "not that of the coupling"),
        ({"lower_bound": 1.01}, "wrong lower bound"),
        ({"plan": 0.9}, "misses its marginals"),
    ],
)
@pytest.mark.parametrize("masses", [None, 3.0])
def test_a_false_claim_on_a_coupling_is_found(change, words, masses, rng):
    X, Y = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    a = b = None
    if masses is not None:
        a, b = masses * rng.dirichlet(np.ones(5)), masses * rng.dirichlet(np.ones(5))
    result = epsilot.solve_gromov(X, Y, a, b, rtol=1e-3)
    names = "plan", "value", "lower_bound"
    claimed = SimpleNamespace(**{x: change.get(x, 1.0) * getattr(result, x) for x in names})
    A, B = (gromov.squares(np.longdouble(Z)) for Z in (X, Y))
    found = " ".join(gromov.coupling_defects(rng, claimed, A, B, np.zeros((5, 5)), a, b))
    assert words in found if words else found == ""


def test_wrong_bounds_of_one_problem_of_a_batch_are_found():
    rng = np.random.default_rng(0)
    C, a, b = rng.random((20, 4, 3)), rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(3), 20)
    batch = epsilot.solve_batch(C, a, b, plans=True, potentials=True)
    many = batches.Many(epsilot.solve_batch, (C, a, b), list(zip(C, a, b, strict=True)), "")
    answer = problems.CallRecord(batch, None, [])
    assert list(batches.batch_defects(answer, many, {})) == []
    batch.value[7] -= 1e-9
    found = list(batches.batch_defects(answer, many, {}))
    assert any("wrong upper bound" in text and "1 of 20" in text for text in found)


def test_a_call_that_returns_late_is_measured():
    def busy(until):
        end = time.process_time() + until
        while time.process_time() < end:
            pass

    late, _ = limits.overshoot(lambda: busy(1.5), 0.05, 0)
    assert 0.2 < late < 1.55
    early, _ = limits.overshoot(lambda: None, 30.0, 0)
    assert early is None


def test_a_forked_run_knows_nothing_of_an_interrupt_of_its_parent(tmp_path, monkeypatch):
    def drive(self):
        with interrupts.graceful_interrupts() as has_come:
            ends = time.monotonic() + 30
            while not has_come() and time.monotonic() < ends:
                time.sleep(0.01)

    monkeypatch.setattr(resume.Forked, "again", drive)
    monkeypatch.setattr(interrupts._last_interrupt, "at", time.monotonic() + 60)
    run = resume.Forked(tmp_path, None, None, None, {})
    assert run.killed(signal.SIGINT, 1.0) == []


def test_a_signal_that_comes_when_its_call_has_ended_interrupts_nothing(monkeypatch):
    slow = limits.WATCHER.replace("time.sleep(seconds)", "time.sleep(seconds + 0.5)")
    monkeypatch.setattr(limits, "WATCHER", slow)
    before = signal.getsignal(signal.SIGINT)
    late, answer = limits.overshoot(lambda: time.sleep(0.1) or "answer", 0.1, signal.SIGINT)
    assert answer == "answer"
    assert late < 0.1
    assert signal.getsignal(signal.SIGINT) is before
