import math

import pytest

from epsilot.studies.lab.document import tally
from epsilot.studies.paper.fig1_claims import claims, reference_table
from epsilot.studies.paper.fig1_panels import chosen_panels, size_curves
from epsilot.studies.paper.measures import operations, soundness

BOTH = ("synthetic", "mnist")

GROWTH = {"pdasmd": 4.0, "aam": 1.0, "sinkhorn": 2.0, "stochastic_sinkhorn": 3.0}


def fake(data, stop, n, method, work, B=1, is_timed=False, seconds=1.0, n_iter=10, given=None):
    return {
        "data": data,
        "stop": stop,
        "n": n,
        "method": method,
        "operations": work,
        "B": B,
        "certificate_operations": 10**9,
        "is_timed": is_timed,
        "seconds": seconds,
        "eps": 0.05,
        "n_iter": n_iter,
        "given": given or {},
        "has_ended": True,
        "gap": 0.01,
    }


def fake_lines(exponent=2.0, batch=0.5, turn=16, sinkhorn=2.0):
    lines = []
    for data in BOTH:
        for n in (16, 64, 144):
            for method, factor in {**GROWTH, "sinkhorn": sinkhorn}.items():
                lines.append(fake(data, "paper", n, method, factor * n**exponent))
            for B in (1, 2, 4, 8, 16):
                seconds = B**-0.2 if turn >= B else 5.0
                lines.append(
                    fake(data, "paper", n, "pdasmd", n * n * B**batch, B, True, seconds, B**batch)
                )
    return lines


def verdicts(lines):
    found = claims(lines, chosen_panels(BOTH, ()), "paper")
    return {claim.text: claim.verdict for claim in found if claim.where[1] in "abcd"}


HOLDS = {
    "operations of PDASMD grow as n²": "holds",
    "AAM uses fewer operations than PDASMD": "holds",
    "Sinkhorn uses fewer operations than PDASMD": "holds",
    "Stochastic Sinkhorn uses fewer operations than PDASMD": "holds",
    "operations of PDASMD-B grow as √B": "holds",
    "outer loops of PDASMD-B grow as √B": "holds",
    "running time does not fall as 1/√B": "holds",
    "running time falls up to B ≈ 12": "holds",
}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"exponent": 2.2}, ["operations of PDASMD grow as n²"]),
        ({"exponent": 1.8}, ["operations of PDASMD grow as n²"]),
        ({"sinkhorn": 4.5}, ["Sinkhorn uses fewer operations than PDASMD"]),
        (
            {"batch": 0.3},
            ["operations of PDASMD-B grow as √B", "outer loops of PDASMD-B grow as √B"],
        ),
        ({"turn": 4}, ["running time falls up to B ≈ 12"]),
    ],
)
def test_claims_are_judged_by_the_lines(change, failing):
    expected = HOLDS | dict.fromkeys(failing, "does not hold")
    assert verdicts(fake_lines(**change)) == expected


def test_a_claim_without_lines_is_not_judged():
    assert set(verdicts([]).values()) == {"not measured"}


def test_the_tally_names_what_fails():
    panels = chosen_panels(("synthetic",), ("b",))
    assert tally(claims(fake_lines(), panels, "paper")) == "2 of 2 tested claims hold."
    assert tally(claims(fake_lines(exponent=3), panels, "paper")) == (
        "1 of 2 tested claims hold. These do not: operations of PDASMD grow as n² (b) synthetic "
        "images."
    )


def test_the_certificate_pays_for_its_proofs():
    line = fake("mnist", "certificate", 4, "aam", 5)
    assert operations(line) == 5 + 10**9
    assert operations({**line, "stop": "paper"}) == 5
    assert operations({**line, "operations": None}) is None


def test_runs_that_did_not_end_are_reported_and_left_out():
    lines = fake_lines()
    broken = [*lines, {**lines[0], "operations": 1e30, "has_ended": False}]
    assert size_curves(broken, "a", "synthetic", "paper") == size_curves(
        lines, "a", "synthetic", "paper"
    )
    assert f"{len(lines)} of {len(broken)} solves ended" in soundness(broken)
    assert "0.2 ε in the median" in soundness(lines)


def test_the_reference_table_compares_medians():
    (row,) = reference_table([fake("synthetic", "paper", 144, "sinkhorn", 3.8e8)]).rows
    assert row == ("sinkhorn", "144", "3.80e+08", "1.9e+08", "2.00")
    assert math.isclose(float(row[4]), 2)
