"""Our network simplex beside POT's on the arcs of the first restricted problem.

python benchmarks/simplex.py [--sizes 1024 4096] [--problems images points2] [--seeds 3]

Both start from the same potentials: each builds a tree of arcs of least reduced cost first.
Milliseconds of wall time, least of interleaved rounds, medians over seeds; the values must agree.
"""

from __future__ import annotations

import argparse
import warnings
from copy import deepcopy
from statistics import median
from typing import Any

import numpy as np

from epsilot.problems.problem import Additive, make_problem
from epsilot.solvers.arc_simplex import basic_flow
from epsilot.solvers.restricted_simplex import RestrictedSimplex, RestrictedState, first_basis
from epsilot_lab.document import markdown_row
from epsilot_lab.instances import FAMILIES
from epsilot_lab.measuring import in_turns

COLUMNS = ("n", "problem", "arcs", "POT's ms", "ours ms", "times faster")


def opened(M: Any, a: Any, b: Any) -> tuple[RestrictedSimplex, Additive, RestrictedState]:
    """Sweep, and choose the arcs of the first round."""
    problem = make_problem(M, a, b)
    target = Additive(problem.geometry, 0.0, problem.p, problem.q)
    solver = RestrictedSimplex().resolved("certificate", problem)
    rng = np.random.default_rng(0)
    state, _ = solver.init(target, rng)
    for _ in range(solver.sweeps * len(solver.etas or ())):
        solver.step(target, state, rng)
    solver._open(target, state)
    return solver, target, state


def ours(solver: RestrictedSimplex, target: Additive, state: RestrictedState) -> float:
    """Return the value of the first restricted problem, from its potentials to its optimum."""
    state = deepcopy(state)
    first_basis(target, state)
    while state.round == 0:
        solver._pivots(target, state)
    i, j, flow = basic_flow(state)
    return float(target.geometry.entries(i, j) @ flow)


def theirs(target: Additive, i: Any, j: Any, row: Any, lam: Any) -> float:
    """Return the value that POT's sparse network simplex finds on the same arcs."""
    from ot.lp.emd_wrap import emd_c_sparse

    unit = target.geometry.bounds[1]
    costs = target.geometry.entries(i, j) / unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = emd_c_sparse(
            np.array(target.p),
            target.q * (target.p.sum() / target.q.sum()),
            i.astype(np.uint64),
            j.astype(np.uint64),
            costs,
            10**8,
            row / unit,
            lam / unit,
        )
    return float(found[3]) * unit


def measure(M: Any, a: Any, b: Any) -> tuple[int, float, float]:
    """Return the number of arcs, and the least seconds of POT's simplex and of ours."""
    solver, target, state = opened(M, a, b)
    n, m = target.shape
    i, j = state.sources.astype(np.int64), state.targets.astype(np.int64) - n
    i, j = np.divmod(np.unique(i * m + j), m)
    rivals = {
        "theirs": lambda: theirs(target, i, j, state.row, state.lam),
        "ours": lambda: ours(solver, target, state),
    }
    first = in_turns(rivals, 1)
    np.testing.assert_allclose(*(runs.result for runs in first.values()), rtol=1e-7)
    found = in_turns(rivals, 3)
    return i.size, found["theirs"].least.wall, found["ours"].least.wall


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1024, 4096, 8192])
    parser.add_argument("--problems", nargs="+", default=[x for x in FAMILIES if x != "mnist"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    print(markdown_row(COLUMNS) + "\n" + "|---" * len(COLUMNS) + "|")
    for size in options.sizes:
        for family in options.problems:
            instances = [FAMILIES[family].build(size, seed) for seed in range(options.seeds)]
            found = [measure(*instance) for instance in instances]
            a, b = (1e3 * median(seconds) for seconds in zip(*(x[1:] for x in found), strict=True))
            n, label, n_arcs = FAMILIES[family].n_points(size), FAMILIES[family].label, found[-1][0]
            cells = f"{n}", label, f"{n_arcs}", f"{a:.3g}", f"{b:.3g}", f"{a / b:.2f}"
            print(markdown_row(cells), flush=True)


if __name__ == "__main__":
    main()
