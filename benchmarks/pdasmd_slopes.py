"""Whether PDASMD scales as its theorems say: slopes in n and in B, and ε-solutions on images.

    python benchmarks/pdasmd_slopes.py            # all tables, about a quarter of an hour
    python benchmarks/pdasmd_slopes.py --quick    # small sizes, under a minute
    python benchmarks/pdasmd_slopes.py --only batch

Theorem 2: operations grow like n² at fixed ε. Corollary 1: outer loops grow like √B.
"""

from __future__ import annotations

import argparse
import itertools
from statistics import mean

import epsilot
from epsilot_lab.fitting import fit_power
from epsilot_lab.instances import images

STOPS = ("paper", "certificate")
IMAGES = ("synthetic", "mnist")


def run(side, seed, eps, stop, data="synthetic", **options):
    problem = images(side, seed, data)
    options = {"method": "pdasmd", **options}
    return problem, epsilot.solve(*problem, eps=eps, stop=stop, seed=seed, **options)


def slope(x, y):
    return fit_power(x, y).slope


def table_n(sides, seeds, eps):
    """Print operations against n; return the slope for each stop mode."""
    print(f"\noperations against n, eps = {eps} of max C, mean of {len(seeds)} pairs of images")
    found = {}
    for stop, data in itertools.product(STOPS, IMAGES):
        counts = [
            mean(run(side, seed, eps, stop, data)[1].work.operations for seed in seeds)
            for side in sides
        ]
        found[stop, data] = slope([side**2 for side in sides], counts)
        cells = "  ".join(f"{side**2}: {c:.2e}" for side, c in zip(sides, counts, strict=True))
        print(f"  {stop:<11} {data:<9} slope {found[stop, data]:.2f} [1.85, 2.15]   {cells}")
    return found


def table_batch(batches, seeds, cases):
    """Print outer loops against B; return the slope for each stop mode."""
    print(f"\nouter loops against B, l = ⌈n/B⌉, mean of {len(seeds)} pairs of synthetic images")
    found = {}
    for stop, side, eps in cases:
        results = [[run(side, seed, eps, stop, batch_size=B)[1] for seed in seeds] for B in batches]
        loops = [mean(result.n_iter for result in row) for row in results]
        operations = [mean(result.work.operations for result in row) for row in results]
        found[stop] = slope(batches, loops)
        cells = "  ".join(f"{B}: {k:.1f}" for B, k in zip(batches, loops, strict=True))
        print(
            f"  {stop:<11} n {side**2}, eps {eps}: slope {found[stop]:.2f} [0.4, 0.6], of "
            f"operations {slope(batches, operations):.2f}   {cells}"
        )
    return found


def table_ratio(side, seeds, eps):
    """Print how many operations the certificate saves; return the smallest ratio."""
    ratios = []
    for seed in seeds:
        paper, certified = (run(side, seed, eps, stop)[1].work.operations for stop in STOPS)
        ratios.append(paper / certified)
    cells = "  ".join(f"{r:.0f}x" for r in ratios)
    print(f"\noperations, paper / certificate, n = {side**2}, eps = {eps} [at least 15x]: {cells}")
    return min(ratios)


def table_solutions(sides, seeds, accuracies):
    """Print the worst certified and true gap of each setting; return the worst of all."""
    import ot

    print(f"\nε-solutions: worst certified and true gap over {len(seeds)} pairs, in units of eps")
    worst = 0.0
    for data, stop, method in itertools.product(IMAGES, STOPS, ("pdasmd", "pdasgd")):
        for eps, side in itertools.product(accuracies, sides):
            certified, true, loops = 0.0, 0.0, []
            for seed in seeds:
                (M, a, b), result = run(side, seed, eps, stop, data, method=method)
                certified = max(certified, result.gap / eps)
                exact = float(ot.emd2(a, b, M, numItermax=10_000_000))
                true = max(true, (result.value - exact) / eps)
                loops.append(result.n_iter)
            worst = max(worst, certified, true)
            print(
                f"  {data:<9} {stop:<11} {method} eps {eps:<5} n {side**2:<4} "
                f"certified {certified:.3f}  true {true:.3f}  outer loops {mean(loops):.0f}",
                flush=True,
            )
    return worst


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", choices=["n", "batch", "ratio", "solutions"])
    chosen = parser.parse_args(arguments)
    quick = chosen.quick
    seeds = range(2) if quick else range(5)
    tables = {
        "n": lambda: table_n((5, 6, 8) if quick else (5, 7, 10, 14, 20), seeds, 0.05),
        "batch": lambda: table_batch(
            (1, 2, 4, 8) if quick else (1, 2, 4, 8, 16, 32),
            seeds if quick else range(3),
            [("paper", 6, 0.2), ("certificate", 10, 0.02)]
            if quick
            else [("paper", 16, 0.05), ("certificate", 16, 0.02)],
        ),
        "ratio": lambda: table_ratio(8 if quick else 12, seeds, 0.05),
        "solutions": lambda: table_solutions(
            (6,) if quick else (6, 10, 14, 20), seeds, (0.2, 0.05) if quick else (0.2, 0.05, 0.02)
        ),
    }
    return {name: table() for name, table in tables.items() if chosen.only in (None, name)}


if __name__ == "__main__":
    main()
