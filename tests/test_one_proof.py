"""One problem and many are proved by the same formulas: break one, and both answers break."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
from epsilot.kernels import proof
right = proof.{name}
proof.{name} = {broken}
import numpy as np, epsilot
from epsilot.engine.batch import engine
M = np.array([[0.3, 1.0, 0.2], [0.7, 0.1, 0.4]])
a, b = np.array([0.4, 0.6]), np.array([0.2, 0.3, 0.5])
for method in ("exact", "small_simplex"):  # a run, and one compiled call
    try:
        one = epsilot.solve(M, a, b, rtol=1e-6, method=method, on_limit="ignore")
        print(one.status.name, round(one.value, 12))
    except (epsilot.CertificateError, epsilot.InvalidProblem):
        print("REFUSED nan")
engine.solve_one = None  # the compiled path alone
try:
    many = epsilot.solve_batch(M[None], a[None], b[None], rtol=1e-6)
    print("CERTIFIED" if many.converged[0] else "OPEN", round(many.value[0], 12))
except TypeError:
    print("LEFT nan")
"""
#: formula -> a wrong one, and the answers for one problem and for many
BROKEN = {
    "to_user": ("right", "CERTIFIED 0.25", "CERTIFIED 0.25"),
    "to_user ": ("lambda *x: 2 * right(*x)", "CERTIFIED 0.5", "CERTIFIED 0.5"),
    "are_consistent": ("lambda *x: False", "REFUSED nan", "LEFT nan"),
    "is_within": ("lambda *x: False", "FINISHED 0.25", "LEFT nan"),
    "are_held": ("lambda *x: False", "REFUSED nan", "LEFT nan"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_formula_shows_in_one_problem_and_in_many(name):
    broken, one, many = BROKEN[name]
    script = SCRIPT.format(name=name.strip(), broken=broken)
    variables = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=variables, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines() == [one, one, many], run.stderr
