"""The accelerated family beside its specification, and APDAGD beside regot.

    python benchmarks/accelerated_family.py            # everything, a quarter of an hour
    python benchmarks/accelerated_family.py --quick    # n = 36 and a small regot run

Synthetic images of the paper, l1 pixel distance, seeds 0, 1, 2; each method runs to its
published stop. A cell is iterations / operations / worst true gap ÷ ε, the specification's
first, then ours, then the ratio of ours to it.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator

import numpy as np

import epsilot
from epsilot import parallel
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers.apdagd import APDAGD
from epsilot.solvers.apdrcd import steps_per_epoch
from epsilot_lab.instances import images, points
from epsilot_lab.measuring import in_turns

Cell = tuple[float, float, float]

#: The specification's tables: n, method, option, then for each ε iterations, operations and the
#: worst gap ÷ ε. Published stop (rule V; "duality" is rule D):
PUBLISHED = """
eps                                   | 0.2               | 0.05              | 0.02
36  apdagd violation                  | 136   6.5e6 0.009 | 572   2.8e7 0.008 | 1432  6.9e7  0.007
36  apdamd                            | 145   6.9e6 0.009 | 621   3.0e7 0.008 | 1557  7.5e7  0.007
36  hybrid_primal_dual accelerated    | 416   6.2e6 0.047 | 1715  2.6e7 0.040 | 4358  6.5e7  0.036
36  hybrid_primal_dual line_search    | 95    3.3e6 0.044 | 381   1.3e7 0.035 | 954   3.3e7  0.033
36  apdrcd                            | 6.1e4 3.4e7 0.008 | 2.8e5 1.6e8 0.007 | 6.9e5 3.8e8  0.007
36  apdgcd                            | 5.4e4 6.5e8 0.006 | 4.9e5 5.9e9 0.010
144 apdagd violation                  | 153   1.1e8 0.010 | 652   4.8e8 0.007 | 1671  1.2e9  0.007
144 apdagd duality                    | 39    3.6e7 0.093 | 174   1.4e8 0.078 | 444   3.4e8  0.070
144 apdamd                            | 178   1.3e8 0.010 | 781   5.7e8 0.007 | 1961  1.4e9  0.007
144 hybrid_primal_dual accelerated    | 867   2.0e8 0.064 | 3776  8.7e8 0.041 | 9557  2.2e9  0.040
144 hybrid_primal_dual line_search    | 100   5.4e7 0.061 | 432   2.3e8 0.039 | 1094  5.9e8  0.037
144 apdrcd                            | 5.4e5 1.2e9 0.010 | 2.3e6 5.2e9 0.007 | 6.0e6 1.3e10 0.006
"""
#: Certified stop (rule G, at the published η):
CERTIFIED = """
eps                                   | 0.05              | 0.02
144 apdagd                            | 45    4.1e7 0.61  | 158   1.3e8 0.73
144 apdamd                            | 86    7.5e7 0.67  | 333   2.6e8 0.74
144 apdrcd                            | 1.5e5 3.5e8 0.61  | 5.3e5 1.2e9 0.72
144 hybrid_primal_dual plain          | 259   7.6e7 0.84  | 665   1.7e8 0.87
144 hybrid_primal_dual line_search    | 31    2.4e7 0.81  | 74    5.1e7 0.83
"""
OPTION = {"apdagd": "rule", "hybrid_primal_dual": "form"}


def cells(table: str) -> Iterator[tuple[int, str, dict[str, str], float, Cell]]:
    """Yield n, method, options, ε and the specification's cell."""
    head, *lines = ([part.split() for part in line.split("|")] for line in table.split("\n")[1:-1])
    for (n, method, *option), *numbers in lines:
        options = {OPTION[method]: option[0]} if option else {}
        for (eps,), cell in zip(head[1:], numbers, strict=False):
            iterations, operations, worst = map(float, cell)
            yield int(n), method, options, float(eps), (iterations, operations, worst)


def steps_in_an_epoch(method: str, n: int) -> int:
    """Return how many of the specification's iterations one of our epochs holds."""
    return {"apdrcd": 2 * n, "apdgcd": steps_per_epoch(n, n)}.get(method, 1)


def measure(
    n: int, method: str, eps: float, stop: str, n_seeds: int, **options: str
) -> tuple[Cell, float]:
    """Return mean iterations, mean operations, worst gap ÷ ε, and mean seconds."""
    rows = []
    for seed in range(n_seeds):
        M, a, b = images(round(n**0.5), seed)
        result = epsilot.solve(
            M, a, b, eps=eps, method=method, stop=stop, on_limit="raise", **options
        )
        checks = result.work.certificate if stop == "certificate" else 0
        gap = result.gap if stop == "certificate" else result.value - epsilot.exact(M, a, b).value
        rows.append((result.n_iter, result.work.operations + checks, gap / eps, result.seconds))
    iterations, operations, _, seconds = np.mean(rows, axis=0)
    worst = max(row[2] for row in rows)
    return (steps_in_an_epoch(method, n) * iterations, operations, worst), seconds


def print_line(name: str, eps: float, theirs: Cell, ours: Cell, seconds: float) -> None:
    def show(cell: Cell) -> str:
        return f"{cell[0]:9.4g} / {cell[1]:7.2g} / {cell[2]:5.3f}"

    ratio = f"{ours[0] / theirs[0]:5.2f} {ours[1] / theirs[1]:5.2f}"
    print(
        f"{name:37} {eps:5} | {show(theirs)} | {show(ours)} | {ratio} | {seconds:6.2f} s",
        flush=True,
    )


def print_table(table: str, stop: str, sizes: set[int], smallest_eps: float, n_seeds: int) -> None:
    for n, method, options, eps, theirs in cells(table):
        if n in sizes and eps >= smallest_eps:
            ours, seconds = measure(n, method, eps, stop, n_seeds, **options)
            name = " ".join([f"n={n} {method}", *options.values()])
            print_line(name, eps, theirs, ours, seconds)


def reach(problem: Entropic, residual: float) -> int:
    """Run APDAGD until the averaged plan is within an l2 residual; return the iterations."""
    solver, rng = APDAGD(average=True), np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    while not np.linalg.norm(state.zeta - state.start) <= residual * state.beta or state.beta == 0:
        solver.step(problem, state, rng)
    return state.n_steps


def against_regot(n: int, residual: float, rounds: int) -> float | None:
    """Time APDAGD and regot's to the same residual of the averaged plan; return the ratio."""
    print(
        f"\nAPDAGD against regot, n = {n}, η = 1e-3 max C, l2 residual of the average {residual:g}"
    )
    if importlib.util.find_spec("regot") is None:
        print("regot is not installed, so there is nothing to compare with (pip install regot).")
        return None
    import regot

    M, a, b = points(n, 0, concentration=5.0)
    M /= M.max()
    by_columns = np.asfortranarray(M)
    problem = Entropic(Dense(M), 1e-3, a, b)

    def peer(n_iter: int) -> np.ndarray:
        return np.array(
            regot.sinkhorn_apdagd(by_columns, a, b, 1e-3, tol=1e-14, max_iter=n_iter).mar_errs
        )

    n_iter = 25
    while (errors := peer(n_iter)).min() > residual:
        n_iter *= 2
    n_peer = int(np.argmax(errors <= residual))
    n_ours = reach(problem, residual)

    def alone() -> int:
        with parallel.limit(1):
            return reach(problem, residual)

    rivals = {
        "regot": lambda: peer(n_peer),
        "epsilot": lambda: reach(problem, residual),
        "epsilot, 1 thread": alone,
    }
    best = {name: runs.least for name, runs in in_turns(rivals, rounds).items()}
    for name, (wall, cpu, _) in best.items():
        n_steps = n_peer if name == "regot" else n_ours
        print(
            f"{name:18} {n_steps:5} iterations  {wall:7.3f} s wall  {cpu:7.3f} s CPU  "
            f"{best['regot'].wall / wall:5.1f}x wall  {best['regot'].processor / cpu:5.1f}x CPU"
        )
    return best["regot"].wall / best["epsilot"].wall


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n = 36, ε >= 0.05, one minute")
    parser.add_argument("--only", choices=["published", "certified", "regot"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--eps", type=float, help="smallest ε of the tables")
    parser.add_argument("--size", type=int, help="n of the comparison with regot")
    chosen = parser.parse_args(arguments)
    sizes = {36} if chosen.quick else {36, 144}
    smallest = chosen.eps or (0.05 if chosen.quick else 0.02)
    if chosen.only in (None, "published"):
        print("published stop: specification | ours | ratios of iterations, operations | seconds")
        print_table(PUBLISHED, "paper", sizes, smallest, chosen.seeds)
    if chosen.only in (None, "certified") and not chosen.quick:
        print("\ncertified stop, checks counted; ours chooses η, the specification keeps its own")
        print_table(CERTIFIED, "certificate", sizes, smallest, chosen.seeds)
    if chosen.only in (None, "regot"):
        n = chosen.size or (200 if chosen.quick else 1000)
        against_regot(n, 1e-3, 2 if chosen.quick else 3)


if __name__ == "__main__":
    main()
