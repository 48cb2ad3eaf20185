"""Exact transport on a line: processor seconds of whole solves, and the gaps they prove.

python benchmarks/line.py [--sizes 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import epsilot
from epsilot.geometry import PointCloud
from epsilot_lab.measuring import repeated

METRICS = ("sqeuclidean", "euclidean")


def problem(n, metric, seed, has_weights):
    """Return uniform points and squares of such, with equal or with random masses."""
    rng = np.random.default_rng(seed)
    x, y = rng.random(n), rng.random(n) ** 2
    a, b = (rng.dirichlet(np.ones(n)) if has_weights else None for _ in "ab")
    return PointCloud(x, y, metric), a, b


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args(arguments)
    print("| points | metric | weights | processor s | relative gap |\n|---|---|---|---|---|")
    for n in options.sizes:
        for metric in METRICS:
            for has_weights in (False, True):
                given = problem(n, metric, 0, has_weights)
                run = partial(epsilot.solve, *given, rtol=1e-9, method="monotone")
                result = run()
                taken = repeated(run, 0.3).median.processor
                weights = "random" if has_weights else "equal"
                gap = abs(result.gap) / result.value
                print(f"| {n:,} | {metric} | {weights} | {taken:.3f} | {gap:.0e} |", flush=True)


if __name__ == "__main__":
    main()
