"""What Sinkhorn steps at the snapshot do for PDASMD: plain, hybrid and Sinkhorn alone.

    python benchmarks/hybrid.py            # n = 100, 400 and 1024, a few minutes
    python benchmarks/hybrid.py --quick    # n = 100

Epochs and operations (in units of n²) to the same certified gap, medians over seeds. A hybrid
epoch costs one pass more than a plain one: the column update is free, the log-normalisers at
the point it leads to are not. A star marks settings in which a seed was not certified.
"""

from __future__ import annotations

import argparse
import itertools
import math
from statistics import median

import numpy as np

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair

METHODS = {
    "pdasmd": {"method": "pdasmd"},
    "pdasmd, hybrid": {"method": "pdasmd", "hybrid": "sinkhorn"},
    "pdasgd": {"method": "pdasgd"},
    "pdasgd, hybrid": {"method": "pdasgd", "hybrid": "sinkhorn"},
    "sinkhorn": {"method": "sinkhorn"},
}
ACCURACIES = (0.02, 0.005)


def images(n, seed):
    side = math.isqrt(n)
    A, B = synthetic_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


def points(n, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.random((2, n, 2))
    return ((X[:, None] - Y) ** 2).sum(axis=2), *rng.dirichlet(np.ones(n), size=2)


def uniform(n, seed):
    rng = np.random.default_rng(seed)
    return rng.random((n, n)), *rng.dirichlet(np.ones(n), size=2)


PROBLEMS = {"images": images, "points": points, "random": uniform}


def measure(sizes, seeds, max_iter):
    """Print the table; return (epochs, operations / n²) of each setting and method."""
    print(f"epochs / operations in n² to a certified eps, medians of {len(seeds)} seeds\n")
    print("| problem | n = | eps / max C | " + " | ".join(METHODS) + " |")
    print("|---" * (3 + len(METHODS)) + "|")
    found = {}
    for kind, n, eps in itertools.product(PROBLEMS, sizes, ACCURACIES):
        cells = []
        for name, options in METHODS.items():
            runs = []
            for seed in seeds:
                M, a, b = PROBLEMS[kind](n, seed)
                runs.append(epsilot.solve(
                    M, a, b, eps=eps * M.max(), seed=seed, max_iter=max_iter, on_limit="ignore",
                    **options,
                ))  # fmt: skip
            epochs = median(run.n_iter for run in runs)
            operations = median(run.work.operations for run in runs) / n**2
            found[kind, n, eps, name] = epochs, operations
            star = "" if all(run.converged for run in runs) else "*"
            cells.append(f"{epochs:.0f} / {operations:.0f}{star}")
        print(f"| {kind} | {n} | {eps} | " + " | ".join(cells) + " |", flush=True)
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n = 100, three seeds")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400, 1024])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-iter", type=int, default=2000)
    chosen = parser.parse_args(arguments)
    sizes, n_seeds = ([100], 3) if chosen.quick else (chosen.sizes, chosen.seeds)
    return measure(sizes, range(n_seeds), chosen.max_iter)


if __name__ == "__main__":
    main()
