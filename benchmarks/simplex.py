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

from epsilot.solvers.restricted_simplex import RestrictedSimplex, State, basic_plan, first_basis
from epsilot.studies.peers.problems import FAMILIES
from epsilot.transport.problem import Additive, make_problem
from timing import best_times


def opened(M: Any, a: Any, b: Any) -> tuple[RestrictedSimplex, Additive, State]:
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


def ours(solver: RestrictedSimplex, target: Additive, state: State) -> float:
    """Return the value of the first restricted problem, from its potentials to its optimum."""
    state = deepcopy(state)
    first_basis(target, state)
    while state.round == 0:
        solver._pivots(target, state)
    plan = basic_plan(target.shape, state)
    return float(target.geometry.entries(plan.i, plan.j) @ plan.flow)


def theirs(target: Additive, i: Any, j: Any, row: Any, lam: Any) -> float:
    """Return the value that POT's sparse network simplex finds on the same arcs."""
    from ot.lp.emd_wrap import emd_c_sparse

    unit = target.geometry.bounds[1]
    costs = target.geometry.entries(i, j) / unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = emd_c_sparse(
            np.array(target.p), target.q * (target.p.sum() / target.q.sum()),
            i.astype(np.uint64), j.astype(np.uint64), costs, 10**8, row / unit, lam / unit,
        )  # fmt: skip
    return float(found[3]) * unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[1024, 4096, 8192])
    parser.add_argument("--problems", nargs="+", default=[x for x in FAMILIES if x != "mnist"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| n | problem | arcs | POT's ms | ours ms | times faster |\n|---|---|---|---|---|---|")
    for size in options.sizes:
        for family in options.problems:
            times: dict[str, list[float]] = {"ours": [], "theirs": []}
            for seed in range(options.seeds):
                solver, target, state = opened(*FAMILIES[family].build(size, seed))
                n, m = target.shape
                i, j = state.sources.astype(np.int64), state.targets.astype(np.int64) - n
                i, j = np.divmod(np.unique(i * m + j), m)
                rivals = {
                    "ours": lambda s=solver, t=target, x=state: ours(s, t, x),
                    "theirs": lambda t=target, i=i, j=j, x=state: theirs(t, i, j, x.row, x.lam),
                }
                values = [run() for run in rivals.values()]
                np.testing.assert_allclose(*values, rtol=1e-7)
                for name, seconds in best_times(rivals, 3).items():
                    times[name].append(seconds)
            a, b = (1e3 * median(times[name]) for name in ("theirs", "ours"))
            label = FAMILIES[family].label
            print(f"| {n} | {label} | {i.size} | {a:.3g} | {b:.3g} | {a / b:.2f} |")


if __name__ == "__main__":
    main()
