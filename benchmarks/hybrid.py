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

import epsilot
from epsilot_lab.document import markdown_row
from epsilot_lab.instances import images, points, random

METHODS = {
    "pdasmd": {"method": "pdasmd"},
    "pdasmd, hybrid": {"method": "pdasmd", "hybrid": "sinkhorn"},
    "pdasgd": {"method": "pdasgd"},
    "pdasgd, hybrid": {"method": "pdasgd", "hybrid": "sinkhorn"},
    "sinkhorn": {"method": "sinkhorn"},
}
ACCURACIES = (0.02, 0.005)


PROBLEMS = {
    "images": lambda n, seed: images(math.isqrt(n), seed),
    "points": points,
    "random": random,
}


def solved(kind, n, eps, seed, max_iter, options):
    M, a, b = PROBLEMS[kind](n, seed)
    limits = {"max_iter": max_iter, "on_limit": "ignore"}
    return epsilot.solve(M, a, b, eps=eps * M.max(), seed=seed, **limits, **options)


def measure(sizes, seeds, max_iter):
    """Print the table; return (epochs, operations / n²) of each setting and method."""
    print(f"epochs / operations in n² to a certified eps, medians of {len(seeds)} seeds\n")
    print(markdown_row(["problem", "n =", "eps / max C", *METHODS]))
    print("|---" * (3 + len(METHODS)) + "|")
    found = {}
    for kind, n, eps in itertools.product(PROBLEMS, sizes, ACCURACIES):
        cells = []
        for name, options in METHODS.items():
            runs = [solved(kind, n, eps, seed, max_iter, options) for seed in seeds]
            epochs = median(run.n_iter for run in runs)
            operations = median(run.work.operations for run in runs) / n**2
            found[kind, n, eps, name] = epochs, operations
            star = "" if all(run.converged for run in runs) else "*"
            cells.append(f"{epochs:.0f} / {operations:.0f}{star}")
        print(markdown_row([kind, f"{n}", f"{eps}", *cells]), flush=True)
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
