import math

import pytest

from epsilot_lab.judging import count
from epsilot_lab.paper.fig1_claims import (
    certificate_claims,
    directions,
    loop_claims,
    slope_table,
    statements,
)
from epsilot_lab.paper.fig1_curves import size_curves
from epsilot_lab.paper.fig1_panels import ONE_CRITERION, OWN_RULES, chosen_panels
from epsilot_lab.paper.fig1_reference import reference_table
from epsilot_lab.paper.measures import operations, soundness
from epsilot_lab.paper.numpy_pdasmd import NAME

BOTH = ("synthetic", "mnist")
PANELS = chosen_panels(BOTH, ())
SEEDS = range(5)
SHARP = {"smoothness": "sharp"}

#: Operations of every series, in units of PDASMD with L̄ = 1/η.
LEVELS = {"aam": 0.2, "sinkhorn": 0.5, "stochastic_sinkhorn": 0.7, "apdagd": 1.5}
LEVELS |= {"pdasgd": 0.9, "apdrcd": 10.0}


def fake(data, stop, n, method, work, seed=0, **fields):
    return {
        "data": data,
        "stop": stop,
        "n": n,
        "seed": seed,
        "method": method,
        "operations": work,
        "B": 1,
        "certificate_operations": 10**9,
        "is_timed": False,
        "seconds": 1.0,
        "eps": 0.05,
        "n_iter": 10,
        "given": {},
        "has_ended": True,
        "gap": 0.01,
        "value": 0.1,
        **fields,
    }


def sized(data, exponent, levels, stop="paper", eps=0.05):
    """Yield solves against n: every method, both constants, both rules."""
    shown = ONE_CRITERION["a"] + ONE_CRITERION["b"] + OWN_RULES
    for series in dict.fromkeys(shown):
        given = dict(series.options) if stop == "paper" else {}
        level = levels.get(series.method, 1.0 if given else math.sqrt(5))
        for n in (16, 64, 144):
            for seed in SEEDS:
                work = level * 1e3 * n**exponent * (1 + 0.01 * seed)
                yield fake(data, stop, n, series.method, work, seed, given=given, eps=eps)


def batched(data, batch, turn):
    """Yield timed solves against B: both constants, and NumPy."""
    codes = [("pdasmd", {}, 0.5), ("pdasmd", SHARP, 0.5), (NAME, SHARP, -0.2)]
    for method, given, slope in codes:
        for n in (16, 64):
            for B in (1, 2, 4, 8, 16):
                for seed in SEEDS:
                    yield fake(
                        data,
                        "paper",
                        n,
                        method,
                        n * n * B**batch * (1 + seed),
                        seed,
                        B=B,
                        is_timed=True,
                        given={"batch_size": B, **given},
                        n_iter=B**batch,
                        seconds=B**slope if turn >= B else 5.0,
                    )


def fake_lines(exponent=2.0, batch=0.5, turn=16, **levels):
    lines = []
    for data in BOTH:
        lines += sized(data, exponent, LEVELS | levels)
        lines += batched(data, batch, turn)
    return lines


def verdicts(lines):
    return {statement.text: statement.verdict for statement in statements(lines, PANELS)}


HOLDS = dict.fromkeys(
    [
        "operations of PDASMD grow as n²",
        "AAM uses fewer operations than PDASMD",
        "Sinkhorn uses fewer operations than PDASMD",
        "Stochastic Sinkhorn uses fewer operations than PDASMD",
        "operations of PDASMD-B grow as √B",
        "running time does not fall as 1/√B",
    ],
    "holds",
) | {"running time falls up to B ≈ 12": "holds in part"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"exponent": 2.2}, {"operations of PDASMD grow as n²": "does not hold"}),
        ({"exponent": 1.8}, {"operations of PDASMD grow as n²": "does not hold"}),
        ({"sinkhorn": 4.5}, {"Sinkhorn uses fewer operations than PDASMD": "does not hold"}),
        # between the two constants
        ({"sinkhorn": 1.5}, {"Sinkhorn uses fewer operations than PDASMD": "holds in part"}),
        ({"batch": 0.3}, {"operations of PDASMD-B grow as √B": "does not hold"}),
        ({"turn": 4}, {"running time falls up to B ≈ 12": "does not hold"}),
    ],
)
def test_claims_are_judged_by_the_lines(change, expected):
    assert verdicts(fake_lines(**change)) == HOLDS | expected


def test_a_claim_without_lines_is_not_judged():
    assert set(verdicts([]).values()) == {"not measured yet"}
    missing = [line for line in fake_lines() if line["given"] != SHARP]
    judged = verdicts(missing)
    assert judged["AAM uses fewer operations than PDASMD"] == "not measured yet"
    assert judged["operations of PDASMD-B grow as √B"] == "holds"


def test_a_fit_from_one_row_and_from_two_are_both_judged():
    (found,) = [s for s in statements(fake_lines(), PANELS) if "PDASMD-B" in s.text]
    assert [test.where.rpartition(", ")[2] for test in found.tests] == [
        "with B = 1",
        "from B = 2 on",
    ] * 4


def test_the_tally_counts_a_claim_once():
    panels = chosen_panels(("synthetic",), ("b",))
    assert count(statements(fake_lines(), panels)) == (
        "2 of 2 claims of the paper hold in every test."
    )
    assert count(statements(fake_lines(exponent=3), panels)) == (
        "1 of 2 claims of the paper hold in every test. Does not hold (1): operations of PDASMD "
        "grow as n²."
    )


def test_other_methods_have_a_direction():
    found = {(c.text.split()[0], c.where): c.verdict for c in directions(fake_lines(), PANELS)}
    one = "synthetic images, L̄ = {}/η, one criterion"
    assert found["APDAGD", one.format(5)] == "holds"
    assert found["APDAGD", one.format(1)] == "does not hold"
    assert found["PDASGD", one.format(1)] == "holds"
    assert found["APDRCD", one.format(5)] == "does not hold"
    assert ("APDAGD", "MNIST digits, L̄ = 5/η, own rule") in found


def test_the_same_is_asked_under_the_certificate():
    lines = [*sized("synthetic", 2.0, LEVELS | {"aam": 9.0}, "certificate", 0.005)]
    lines = [line | {"certificate_operations": 0} for line in lines]
    found = {
        c.text: c.verdict for c in certificate_claims(lines, PANELS, 0.005) if "synth" in c.where
    }
    assert found["operations of PDASMD grow as n²"] == "holds"
    assert found["AAM uses fewer operations than PDASMD"] == "does not hold"
    assert found["Sinkhorn uses fewer operations than PDASMD"] == "holds"
    table = slope_table(fake_lines() + lines, PANELS, [0.005])
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["AAM"][:3] == ("2.00 [1.99, 2.01]",) * 3
    assert rows["PDASMD, L̄ = 1/η"][2] == "as above"
    assert len(table.columns) == 7


def test_outer_loops_are_listed():
    assert {c.verdict for c in loop_claims(fake_lines(), PANELS)} == {"holds"}


def test_the_certificate_pays_for_its_proofs():
    line = fake("mnist", "certificate", 4, "aam", 5)
    assert operations(line) == 5 + 10**9
    assert operations({**line, "stop": "paper"}) == 5
    assert operations({**line, "operations": None}) is None


def test_runs_that_did_not_end_are_reported_and_left_out():
    lines = fake_lines()
    broken = [*lines, {**lines[0], "operations": 1e30, "has_ended": False}]
    shown = ONE_CRITERION["a"], "synthetic", "paper"
    assert size_curves(broken, *shown) == size_curves(lines, *shown)
    assert f"{len(lines)} of {len(broken)} solves ended" in soundness(broken)


def test_the_reference_table_compares_medians():
    (row,) = reference_table([fake("synthetic", "paper", 144, "sinkhorn", 3.8e8)]).rows
    assert row == ("sinkhorn", "144", "3.80e+08", "1.9e+08", "2.00")
    assert math.isclose(float(row[4]), 2)
