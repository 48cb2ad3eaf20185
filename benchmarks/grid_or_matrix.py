"""Whether masses on a grid are solved as fast as the same problem given as a matrix of costs.

python benchmarks/grid_or_matrix.py [--sides 32 64] [--rtol 0.01 1e-6] [--classes ...]

Processor seconds of whole calls, least of three (of one, where that takes over a second): the grid,
the matrix as "auto" solves it, which recognises distances of cells, and the matrix by
restricted_simplex, which knows nothing but its entries.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import epsilot
from epsilot.geometry import Grid
from epsilot_lab.dotmark import CLASSES, pair
from epsilot_lab.measuring import repeated

METRICS = ("sqeuclidean", "cityblock")


def calls(A, B, metric, rtol):
    """Return the three ways to solve a problem, by name."""
    a, b = (x.ravel() / x.sum() for x in (A, B))
    M = Grid(A.shape, None, metric).block(0, A.size)
    goal = {"rtol": rtol, "normalize": True, "on_limit": "ignore"}
    return {
        "grid": partial(epsilot.solve_grid, A, B, metric=metric, **goal),
        "matrix": partial(epsilot.solve, M, a, b, **goal),
        "entries": partial(epsilot.solve, M, a, b, method="restricted_simplex", **goal),
    }


def row(name, side, metric, rtol):
    """Return seconds of the three ways, and what they chose."""
    A, B = pair(name, side, 0)
    found = {}
    for way, call in calls(A, B, metric, rtol).items():
        runs = repeated(call, 1.0, most=3)
        found[way] = runs.least.processor, runs.result.method, runs.result.value
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="*", default=[32, 64])
    parser.add_argument("--rtol", type=float, nargs="*", default=[0.01, 1e-6])
    parser.add_argument("--classes", nargs="*", default=list(CLASSES), choices=list(CLASSES))
    options = parser.parse_args(arguments)
    for metric in METRICS:  # compile
        row(next(iter(CLASSES)), 9, metric, 0.01)
    print("| class | side | cost | rtol | grid s | matrix s | its entries s | slower grids |")
    print("|---|---|---|---|---|---|---|---|")
    n_slower, n_rows = 0, 0
    for side in options.sides:
        for name in options.classes:
            for metric in METRICS:
                for rtol in options.rtol:
                    found = row(name, side, metric, rtol)
                    ours, *others = (found[way][0] for way in ("grid", "matrix", "entries"))
                    is_slower = ours > min(others)
                    n_slower, n_rows = n_slower + is_slower, n_rows + 1
                    values = [found[way][2] for way in found]
                    assert np.ptp(values) <= 2.1 * rtol * max(values), values
                    seconds = " | ".join(f"{found[way][0]:.4f} ({found[way][1]})" for way in found)
                    mark = "slower" if is_slower else ""
                    print(
                        f"| {name} | {side} | {metric} | {rtol:g} | {seconds} | {mark} |",
                        flush=True,
                    )
    print(f"\nThe grid is slower in {n_slower} of {n_rows} rows.")


if __name__ == "__main__":
    main()
