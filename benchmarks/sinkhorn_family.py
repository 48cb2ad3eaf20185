"""The Sinkhorn family and AAM on the paper's images, beside the reference numbers.

    python benchmarks/sinkhorn_family.py             # the table, 5 seeds (about 10 minutes)
    python benchmarks/sinkhorn_family.py --quick     # n <= 64, ε >= 0.05 (about a minute)
    python benchmarks/sinkhorn_family.py --speed     # time per update against POT, one thread
    python benchmarks/sinkhorn_family.py --stress    # hard instances, every method
    python benchmarks/sinkhorn_family.py --options   # domains and overrelaxation of Sinkhorn

Iterations are half-steps for Sinkhorn and updates for the coordinate methods; operations
include setup, the final plan (3 n²) and its rounding (8 n²). Both are medians over the seeds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import ot

import epsilot
from epsilot import parallel
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers import make_solver
from epsilot_lab import instances
from epsilot_lab.instances import Instance, clouds, squared, weights
from epsilot_lab.measuring import timed

SIZES = (36, 64, 100, 144)
EPSILONS = (0.2, 0.05, 0.02)
TOLERANCE = 0.15


@dataclass(frozen=True)
class Algorithm:
    """A line of the table: what to run, and (iterations, operations) expected for each ε."""

    name: str
    method: str
    expected: dict[float, list[tuple[int, float]]]
    options: dict = field(default_factory=dict)
    is_coordinate: bool = False
    n_repeats: int = 1  # runs an instance, with different seeds
    note: str = ""  # why a median may differ by more than the tolerance


ALGORITHMS = [
    Algorithm("Sinkhorn", "sinkhorn", {
        0.2: [(202, 1.4e6), (179, 3.8e6), (195, 1.0e7), (212, 2.3e7)],
        0.05: [(1483, 1.0e7), (2364, 5.0e7), (1265, 6.4e7), (1819, 1.9e8)],
        0.02: [(6258, 4.2e7), (6611, 1.4e8), (4937, 2.5e8), (5052, 5.3e8)],
    }),
    Algorithm("Greenkhorn", "greenkhorn", {
        0.2: [(3958, 2.7e6), (6959, 8.3e6), (10012, 1.9e7), (18189, 4.9e7)],
        0.05: [(15411, 1.0e7), (43235, 5.1e7), (51913, 9.6e7), (83414, 2.2e8)],
        0.02: [(37319, 2.5e7), (111384, 1.3e8), (154048, 2.9e8), (199635, 5.3e8)],
    }, is_coordinate=True),
    Algorithm("Stochastic Sinkhorn", "stochastic_sinkhorn", {
        0.2: [(3389, 2.5e6), (7610, 1.0e7), (12492, 2.6e7), (20445, 6.1e7)],
        0.05: [(21100, 1.6e7), (49508, 6.5e7), (73636, 1.5e8), (93852, 2.8e8)],
        0.02: [(52663, 3.9e7), (135298, 1.8e8), (208097, 4.3e8), (235926, 7.0e8)],
    }, is_coordinate=True, n_repeats=3, note="random, and the violation has plateaus"),
    Algorithm("Accelerated, printed", "accelerated_sinkhorn", {
        0.2: [(228, 5.4e6), (363, 2.6e7), (425, 7.4e7), (577, 2.1e8)],
        0.05: [(903, 2.1e7), (1469, 1.1e8), (1463, 2.5e8), (2026, 7.3e8)],
        0.02: [(1841, 4.3e7), (2451, 1.8e8), (2988, 5.2e8), (3992, 1.4e9)],
    }, {"variant": "printed"}),
    Algorithm("Accelerated, corrected", "accelerated_sinkhorn", {
        0.2: [(202, 4.8e6), (179, 1.3e7), (195, 3.4e7), (212, 7.6e7)],
        0.05: [(916, 2.2e7), (1653, 1.2e8), (1264, 2.2e8), (1819, 6.5e8)],
        0.02: [(1840, 4.3e7), (2510, 1.8e8), (3088, 5.4e8), (4509, 1.6e9)],
    }),
    Algorithm("AAM dual, line search", "aam", {
        0.2: [(48, 1.2e6), (56, 4.6e6), (60, 1.0e7), (67, 3.0e7)],
        0.05: [(185, 5.2e6), (203, 1.9e7), (265, 4.9e7), (240, 9.3e7)],
        0.02: [(332, 1.0e7), (359, 3.3e7), (547, 1.2e8), (529, 2.4e8)],
    }, {"variant": "dual", "search": "line_search"}),
    Algorithm("AAM primal-dual, line search", "aam", {
        0.2: [(21, 7.1e5), (41, 3.8e6), (41, 9.2e6), (31, 1.5e7)],
        0.05: [(101, 3.4e6), (131, 1.4e7), (121, 3.1e7), (141, 7.7e7)],
        0.02: [(231, 8.4e6), (291, 3.4e7), (281, 7.7e7), (331, 1.7e8)],
    }, {"variant": "primal_dual", "search": "line_search"},
        note="marginals are not smoothed: no mass is zero"),
    Algorithm("AAM primal-dual, backtracking", "aam", {
        0.2: [(31, 7.4e5), (41, 3.1e6), (41, 7.4e6), (41, 1.5e7)],
        0.05: [(121, 2.9e6), (161, 1.2e7), (151, 2.8e7), (161, 6.2e7)],
        0.02: [(301, 7.3e6), (401, 3.1e7), (391, 7.3e7), (421, 1.6e8)],
    }, {"variant": "primal_dual", "search": "backtracking"},
        note="marginals are not smoothed: no mass is zero"),
]  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """Medians over the seeds, and the worst gap."""

    iterations: float
    operations: float
    certified_operations: float
    worst: float  # (value - exact) / ε with the published stop
    n_failed: int  # runs without a certificate


def images(n: int, seed: int) -> Instance:
    """Return the cost and two images of the paper with n pixels."""
    return instances.images(round(n**0.5), seed)


def measure(algorithm: Algorithm, n: int, epsilon: float, n_instances: int) -> Cell:
    iterations, operations, costs, worst, n_failed = [], [], [], 0.0, 0
    for k, seed in product(range(n_instances), range(algorithm.n_repeats)):
        M, a, b = images(n, k)
        shared = {"eps": epsilon, "method": algorithm.method, "seed": seed, "n_threads": 1}
        paper = run(M, a, b, stop="paper", **shared, **algorithm.options)
        exact = float(ot.emd2(a, b, M))
        worst = max(worst, (paper.value - exact) / epsilon)
        iterations.append(paper.n_iter * (2 * n if algorithm.is_coordinate else 1))
        operations.append(paper.work.operations + 11 * n * n)
        result = run(M, a, b, **shared, **algorithm.options)
        n_failed += not result.converged
        costs.append(result.work.operations + 11 * n * n)
    medians = (float(np.median(x)) for x in (iterations, operations, costs))
    return Cell(*medians, worst, n_failed)


def run(M, a, b, **options):
    return epsilot.solve(M, a, b, on_limit="ignore", **options)


def table(sizes: list[int], epsilons: list[float], n_seeds: int) -> bool:
    """Print the table; return whether all agree and all are certified."""
    print(
        f"{'ε':>5} {'algorithm':30} {'n':>4} {'iterations':>10} {'expected':>9} {'ratio':>6} "
        f"{'operations':>10} {'expected':>9} {'ratio':>6} {'gap/ε':>6} {'certified':>9}"
    )
    is_good = True
    for epsilon in epsilons:
        for algorithm in ALGORITHMS:
            for n in sizes:
                cell = measure(algorithm, n, epsilon, n_seeds)
                count, cost = algorithm.expected[epsilon][SIZES.index(n)]
                ratios = cell.iterations / count, cell.operations / cost
                agrees = all(abs(r - 1) <= TOLERANCE for r in ratios)
                remark = "" if agrees else f"  ! {algorithm.note or 'differs'}"
                if cell.n_failed:
                    remark += f"  ! {cell.n_failed} runs not certified"
                is_good &= not cell.n_failed and (agrees or bool(algorithm.note))
                print(
                    f"{epsilon:5g} {algorithm.name:30} {n:4d} {cell.iterations:10.0f} {count:9d} "
                    f"{ratios[0]:6.2f} {cell.operations:10.2e} {cost:9.1e} {ratios[1]:6.2f} "
                    f"{cell.worst:6.3f} {cell.certified_operations:9.1e}{remark}",
                    flush=True,
                )
    print("certified: operations with stop='certificate' and the same options")
    return is_good


# -- hard instances ------------------------------------------------------------------------


def stress_instances() -> Iterator[tuple[str, *Instance, float]]:
    """Yield (name, M, a, b, ε)."""
    for n, epsilon in ((64, 0.05), (100, 0.02)):
        M, a, b = images(n, 0)
        a[::2] = 0
        b[1::2] = 0
        yield f"half the masses zero, n={n}", M, a / a.sum(), b / b.sum(), epsilon
    yield "ε = 0.005, n=36", *images(36, 0), 0.005
    M, a, b = images(64, 1)
    yield "no zero cost", M + 10.0, a, b, 0.05
    rng = np.random.default_rng(0)
    a, b = weights(50, rng, 0.3)
    yield "random cost, Dirichlet(0.3)", rng.random((50, 50)), a, b, 0.02
    yield "separable", rng.random((50, 1)) + rng.random((1, 50)), a, b, 0.02
    yield "n ≠ m", rng.random((40, 70)), np.full(40, 1 / 40), rng.dirichlet(np.ones(70)), 0.02


def stress() -> bool:
    """Run every method on every hard instance, with both stops."""
    print(f"{'instance':30} {'algorithm':30} {'paper: gap/ε':>12} {'certified gap/ε':>15}")
    is_good = True
    for name, M, a, b, epsilon in stress_instances():
        for algorithm in ALGORITHMS:
            gaps = []
            for stop in ("paper", "certificate"):
                result = run(
                    M, a, b, eps=epsilon, method=algorithm.method, stop=stop, **algorithm.options
                )
                exact = float(ot.emd2(a, b, M))
                gaps.append((result.value - exact) / epsilon)
                is_good &= gaps[-1] <= 1 and (stop == "paper" or result.converged)
            print(f"{name:30} {algorithm.name:30} {gaps[0]:12.4f} {gaps[1]:15.4f}", flush=True)
    return is_good


# -- what the options of Sinkhorn bring ------------------------------------------------------

CHOICES = {
    "sinkhorn, log, ω = 1": ("sinkhorn", {"domain": "log", "relaxation": 1.0}),
    "sinkhorn, kernel, ω = 1": ("sinkhorn", {"relaxation": 1.0}),
    "sinkhorn, log, ω adapted": ("sinkhorn", {"domain": "log"}),
    "sinkhorn (kernel, ω adapted)": ("sinkhorn", {}),
    "aam": ("aam", {}),
}
TARGETS = [
    {"eps": 0.05},
    {"eps": 0.02},
    {"eps": 0.005},
    {"eps": 0.001},
    {"reg": 0.02, "tol": 1e-6},
    {"reg": 0.005, "tol": 1e-5},
]


def mixed_instances(n_seeds: int) -> Iterator[Instance]:
    """Yield images, Gaussian points and random costs."""
    for seed in range(n_seeds):
        yield images(64, seed)
        yield images(144, seed)
        rng = np.random.default_rng(seed)
        M = squared(*clouds(100, rng, 3, "normal"))
        yield M / M.max(), np.full(100, 0.01), np.full(100, 0.01)
        a, b = weights(100, rng, 0.3)
        yield rng.random((100, 100)), a, b


def options(n_seeds: int) -> bool:
    """Print the operations that each choice needs for a certified target."""
    print("operations to the target, geometric means; ! marks targets missed")
    names = [", ".join(f"{k}={v:g}" for k, v in target.items()) for target in TARGETS]
    print(f"{'':30}" + "".join(f"{name:>21}" for name in names))
    is_good = True
    for choice, (method, chosen) in CHOICES.items():
        cells = []
        for target in TARGETS:
            runs = [
                run(M, a, b, method=method, max_seconds=60, **target, **chosen)
                for M, a, b in mixed_instances(n_seeds)
            ]
            mean = np.exp(np.mean([np.log(result.work.operations) for result in runs]))
            n_missed = sum(not result.converged for result in runs)
            is_good &= not n_missed
            cells.append(f"{mean:.2e}{'!' * n_missed}")
        print(f"{choice:30}" + "".join(f"{cell:>21}" for cell in cells), flush=True)
    return is_good


# -- time ----------------------------------------------------------------------------------


def entropic(n: int, eta: float) -> tuple[Entropic, np.ndarray]:
    """Return uniform points in the square, squared distances over their maximum."""
    M = squared(*clouds(n, np.random.default_rng(0)))
    M /= M.max()
    made = make_problem(M)
    return Entropic(made.geometry, eta, made.p, made.q), M


def ours(method: str, target: Entropic, n_steps: int, **options) -> Callable[[], float]:
    """Return a call that measures the processor seconds of a step: the time on an idle machine."""
    solver = make_solver(method, options).resolved("paper", target)
    rng = np.random.default_rng(0)

    def seconds() -> float:
        state, _ = solver.init(target, rng)
        solver.step(target, state, rng)
        spent, _ = timed(lambda: [solver.step(target, state, rng) for _ in range(n_steps)])
        return spent.processor / n_steps

    return seconds


def peer(function, target: Entropic, M: np.ndarray, low: int, high: int) -> Callable[[], float]:
    """Return a call that measures the processor seconds of an iteration of POT's."""

    def run(n_iter: int) -> float:
        limits = {"numItermax": n_iter, "stopThr": 0, "warn": False}
        spent, _ = timed(lambda: function(target.p, target.q, M, target.eta, **limits))
        return spent.processor

    return lambda: (run(high) - run(low)) / (high - low)


def speed(n_update: int, n_iterate: int, n_rounds: int) -> bool:
    """Time an update of Greenkhorn and an iteration of log-domain Sinkhorn against POT."""
    target_u, M_u = entropic(n_update, 0.05)
    target_i, M_i = entropic(n_iterate, 0.01)
    rivals = [
        ours("greenkhorn", target_u, 2),
        peer(ot.bregman.greenkhorn, target_u, M_u, 200, 2200),
        ours("sinkhorn", target_i, 4, domain="log"),
        peer(ot.bregman.sinkhorn_log, target_i, M_i, 1, 4),
    ]
    with parallel.limit(1):
        best = np.min([[rival() for rival in rivals] for _ in range(n_rounds)], axis=0)
    best *= [1 / (2 * n_update), 1, 2, 1]  # an epoch has 2 n updates, an iteration two half-steps
    print(f"one thread, processor time, best of {n_rounds} rounds, measured in turn")
    print(
        f"Greenkhorn update, n={n_update}: {best[0] * 1e6:.2f} µs, POT {best[1] * 1e6:.2f} µs, "
        f"{best[1] / best[0]:.1f}x (at least 4x wanted)"
    )
    print(
        f"log-domain Sinkhorn iteration, n={n_iterate}: {best[2] * 1e3:.2f} ms, POT "
        f"{best[3] * 1e3:.1f} ms, {best[3] / best[2]:.1f}x (at least 8x wanted)"
    )
    return bool(best[1] >= 4 * best[0] and best[3] >= 8 * best[2])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n <= 64, ε >= 0.05")
    parser.add_argument("--speed", action="store_true", help="time per update against POT")
    parser.add_argument("--stress", action="store_true", help="hard instances")
    parser.add_argument("--options", action="store_true", help="what Sinkhorn's options bring")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, help="pixels an image")
    parser.add_argument("--eps", type=float, nargs="+", choices=EPSILONS, help="accuracies")
    parser.add_argument("--seeds", type=int, default=5, help="instances a cell")
    args = parser.parse_args(arguments)
    if args.speed:
        if os.environ.get("OMP_NUM_THREADS") != "1":  # read when NumPy is imported
            command = [sys.executable, __file__, "--speed"]
            one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
            return subprocess.run(command, env={**os.environ, **one}, check=False).returncode
        return 0 if speed(1000, 2048, 10) else 1
    if args.options:
        return 0 if options(min(args.seeds, 3)) else 1
    if args.stress:
        return 0 if stress() else 1
    sizes = args.sizes or (SIZES[:2] if args.quick else SIZES)
    epsilons = args.eps or (EPSILONS[:2] if args.quick else EPSILONS)
    return 0 if table(list(sizes), list(epsilons), args.seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
