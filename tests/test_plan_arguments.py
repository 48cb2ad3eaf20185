"""A plan refuses what it cannot be multiplied by, or asked for, in one sentence."""

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem
from problems import M34

PLAN = epsilot.solve(M34).plan_operator
REFUSED = {
    "a negative row": (lambda: PLAN.row(-1), "the row is -1"),
    "a row beyond": (lambda: PLAN.row(3), "the row is 3.*0 to 2"),
    "a row in words": (lambda: PLAN.row("x"), "the row is 'x'"),
    "a word": (lambda: PLAN @ "x", "real numbers"),
    "a long vector": (lambda: PLAN @ np.ones(3), r"\(3,\).*4 entries"),
    "a short vector, transposed": (lambda: PLAN.T @ np.ones(4), r"\(4,\).*3 entries"),
    "a cube": (lambda: PLAN @ np.ones((4, 2, 2)), r"\(4, 2, 2\)"),
    "a threshold in words": (lambda: PLAN.tosparse("x"), "threshold is 'x'"),
    "no limit": (lambda: PLAN.toarray(limit=None), "limit is None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, pattern = REFUSED[name]
    with pytest.raises(InvalidProblem, match=pattern):
        call()


def test_products():
    X = PLAN.toarray()
    V, U = np.random.default_rng(0).random((4, 2)), np.random.default_rng(1).random((3, 2))
    np.testing.assert_allclose(PLAN @ V, X @ V, atol=1e-16)
    np.testing.assert_allclose(PLAN.T @ U, X.T @ U, atol=1e-16)
