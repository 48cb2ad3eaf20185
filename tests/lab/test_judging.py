import math

import pytest

from epsilot_lab.document import Claim
from epsilot_lab.fitting import NO_FIT, Fit
from epsilot_lab.judging import (
    JudgedClaim,
    Pairs,
    above,
    at_most,
    count,
    paired,
    short_count,
    united,
    within,
)

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
UNTESTED, UNMEASURED = "not tested", "not measured yet"


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({}, UNMEASURED),
        ({4: (0.9,) * 5, 9: (0.2,) * 5}, HOLDS),
        ({4: (1.1,) * 5, 9: (5.0,) * 5}, FAILS),
        ({4: (0.8,) * 5, 9: (1.2,) * 5}, UNDECIDED),
        # a mean below 1, but not at every n
        ({4: (0.1,) * 20, 9: (1.1,) * 5}, UNDECIDED),
        # pairs that differ much decide little
        ({4: (0.2, 0.4, 0.9, 3.0, 4.0)}, UNDECIDED),
        # equal within 5 %: not lower
        ({4: (1.0,) * 5}, FAILS),
        ({4: (0.99,) * 5, 9: (0.98,) * 5}, FAILS),
        # one pair alone has no interval
        ({4: (0.5,)}, UNDECIDED),
    ],
)
def test_comparisons_are_judged_by_their_mean_ratio(ratios, expected):
    assert Pairs(ratios).verdict == expected


def test_pairs_say_how_often_and_by_how_much():
    text = str(Pairs({4: (0.5, 0.5), 9: (0.25, 2.0)}))
    assert text == (
        "mean ratio 0.5946 [0.1484, 2.382], from 0.25 to 2; lower in 3 of 4 pairs, in the median "
        "at 1 of 2 n"
    )
    assert str(Pairs({})) == "–"


def line(n, seed, work, ended=True):
    return {"n": n, "seed": seed, "work": work, "has_ended": ended}


def test_pairs_have_the_same_problem_and_both_ended():
    own = [line(4, 0, 1.0), line(4, 1, 8.0), line(9, 0, 3.0), line(9, 1, 3.0, ended=False)]
    others = [line(4, 0, 2.0), line(4, 1, 4.0), line(9, 1, 1.0), line(16, 0, 1.0)]
    assert paired(own, others, lambda x: x["work"]).ratios == {4: (0.5, 2.0)}


def fit(slope, low, high):
    return Fit(slope, low, high, 0.0)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (fit(2.0, 1.95, 2.05), (HOLDS, HOLDS, HOLDS)),
        (fit(2.1, 2.0, 2.2), (UNDECIDED, UNDECIDED, HOLDS)),
        (fit(2.3, 2.2, 2.4), (FAILS, FAILS, HOLDS)),
        (fit(1.6, 1.5, 1.7), (FAILS, HOLDS, FAILS)),
        (fit(2.0, math.nan, math.nan), (UNDECIDED, UNDECIDED, UNDECIDED)),
        (NO_FIT, (UNMEASURED,) * 3),
    ],
)
def test_slopes_are_judged_by_their_intervals(found, expected):
    judged = within(found, 1.85, 2.15), at_most(found, 2.15), above(found, 1.85)
    assert judged == expected


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], UNMEASURED),
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, UNMEASURED], UNMEASURED),
        ([HOLDS, UNDECIDED], UNDECIDED),
        ([HOLDS, UNTESTED], UNTESTED),
        # one failure refutes a claim, whatever the others say
        ([HOLDS, FAILS], FAILS),
        ([FAILS, UNDECIDED], FAILS),
        ([FAILS, UNMEASURED], FAILS),
        ([FAILS, FAILS], FAILS),
    ],
)
def test_a_claim_holds_only_if_all_its_tests_do(verdicts, expected):
    assert united(verdicts) == united(verdicts[::-1]) == expected


def test_every_claim_is_counted_once():
    def statement(name, *verdicts):
        return JudgedClaim(name, "here", tuple(Claim(name, "x", "1", word) for word in verdicts))

    made = [statement("a", HOLDS, HOLDS), statement("b", HOLDS, FAILS), statement("c", UNTESTED)]
    assert count(made) == (
        "1 of 3 claims of the paper hold in every test. Does not hold (1): b. Not tested (1): c."
    )
    assert short_count(made) == (
        "1 of 3 claims of the paper hold, 1 does not hold, 1 is not tested"
    )
