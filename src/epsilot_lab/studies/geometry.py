"""Time structured geometries beside dense solvers and POT, as ratios.

python -m epsilot_lab geometry [--part grid|megapixel|square|points|million|sweep] [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import epsilot
from epsilot.files.images import synthetic_pair
from epsilot.geometry import Grid, PointCloud

from .. import measuring
from ..instances import images
from ..measuring import Runs

CONSOLE = Console(width=120)


def least(run, repeats=3, clock="wall"):
    """Return the least seconds over repeats on a clock, and the last result."""
    runs = Runs()
    for _ in range(repeats):
        runs.add(run)
    return getattr(runs.least, clock), runs.result


def spread_cloud(rng, n, d):
    """Return points uniform in the cube, and points around one of its corners."""
    return rng.random((n, d)), 0.2 * rng.normal(size=(n, d)) + np.array([0.7, 0.6, 0.5])[:d]


def grid_part(quick):
    """Compare the l1 grid with the network simplex on the stored cost, in processor time."""
    import ot

    side = 24 if quick else 48
    table = Table("l1 grid", "ε / max C", "ot.emd2 ms", "ours ms", "ratio", "gap / ε", "epochs")
    for relative in (0.02, 0.002):
        ratios, rows = [], []
        for seed in range(1 if quick else 3):
            M, a, b = images(side, seed)
            A, B = (x.reshape(side, side) for x in (a, b))
            eps = relative * 2 * (side - 1)
            solve = partial(epsilot.solve_grid, A, B, eps=eps)
            solve()  # compile
            theirs, _ = least(partial(ot.emd2, a, b, M, numItermax=10**8), 2, "thread")
            ours, result = least(solve, 5, "thread")
            ratios.append(theirs / ours)
            rows.append((theirs, ours, result.gap / eps, result.n_iter))
        theirs, ours, gap, epochs = np.median(rows, axis=0)
        table.add_row(
            f"{side} x {side}",
            f"{relative}",
            f"{1e3 * theirs:.0f}",
            f"{1e3 * ours:.2f}",
            f"{np.median(ratios):.0f}x ({min(ratios):.0f} to {max(ratios):.0f})",
            f"{gap:.2f}",
            f"{epochs:.0f}",
        )
    CONSOLE.print(table)


def megapixel_part(quick):
    """Measure the time per iteration and pixel from 10⁴ to 10⁶ cells."""
    table = Table("l1 grid", "certified gap / max C", "epochs", "seconds", "ns / epoch / pixel")
    for side in (100, 200) if quick else (100, 316, 1000):
        A, B = synthetic_pair(side, 0)
        scale = 2 * (side - 1)
        epsilot.solve_grid(A, B, eps=0.02 * scale, max_iter=2, on_limit="ignore")
        seconds, result = least(lambda: epsilot.solve_grid(A, B, eps=0.02 * scale), 2)  # noqa: B023
        table.add_row(
            f"{side} x {side}",
            f"{result.gap / scale:.4f}",
            f"{result.n_iter}",
            f"{seconds:.2f}",
            f"{1e9 * result.seconds / result.n_iter / side**2:.1f}",
        )
    CONSOLE.print(table)
    CONSOLE.print(f"peak memory {peak():.2f} GiB")


def square_part(quick):
    """Compare the squared-Euclidean grid with our own dense Sinkhorn."""
    table = Table(
        "squared l2 grid", "rtol", "dense s", "grid s", "ratio", "gap / value", "peak GiB"
    )
    for side in (32,) if quick else (64, 128):
        A, B = synthetic_pair(side, 0)
        ours, result = least(lambda: epsilot.solve_grid(A, B, metric="sqeuclidean", rtol=0.05), 2)  # noqa: B023
        dense = float("nan")
        if side <= 64:
            M = Grid((side, side), metric="sqeuclidean").block(0, side**2)
            run = lambda: epsilot.solve(M, A.ravel(), B.ravel(), rtol=0.05, method="sinkhorn")  # noqa: B023, E731
            dense, _ = least(run, 1)
        table.add_row(
            f"{side} x {side}",
            "0.05",
            f"{dense:.2f}",
            f"{ours:.2f}",
            f"{dense / ours:.1f}x",
            f"{result.gap / result.lower_bound:.3f}",
            f"{peak():.2f}",
        )
    CONSOLE.print(table)


def points_part(quick):
    """Solve lazy clouds to a certified relative gap."""
    table = Table("points", "rtol", "method", "gap / value", "epochs", "seconds", "peak GiB")
    rng = np.random.default_rng(0)
    for n, d, rtol in ((2000, 2, 0.05),) if quick else ((20_000, 2, 0.05), (20_000, 3, 0.05)):
        X, Y = spread_cloud(rng, n, d)
        seconds, result = least(lambda: epsilot.solve_sample(X, Y, rtol=rtol, lazy=True), 1)  # noqa: B023
        table.add_row(
            f"{n} in {d}-d",
            f"{rtol}",
            result.method,
            f"{result.gap / result.lower_bound:.4f}",
            f"{result.n_iter}",
            f"{seconds:.1f}",
            f"{peak():.2f}",
        )
    CONSOLE.print(table)


def million_part(quick):
    """Solve for a hundred thousand points: ten thousand million costs, none stored."""
    n = 5000 if quick else 100_000
    X, Y = spread_cloud(np.random.default_rng(0), n, 2)
    seconds, result = least(lambda: epsilot.solve_sample(X, Y, rtol=0.1, lazy=True), 1)
    CONSOLE.print(
        f"{n} points, rtol 0.1: gap {result.gap / result.lower_bound:.3f} of the value by "
        f"{result.method}, {result.n_iter} epochs, {seconds:.0f} s, peak {peak():.2f} GiB"
    )


def sweep_part(quick):
    """Compare one lazy log-sum-exp sweep with POT's lazy Sinkhorn."""
    import ot

    n = 4000 if quick else 20_000
    X, Y = spread_cloud(np.random.default_rng(0), n, 2)
    cloud, g, eta = PointCloud(X, Y, single=True), np.zeros(n), 0.05
    cloud.rough.lse_rows(g, eta)
    ours, _ = least(lambda: cloud.rough.lse_rows(g, eta))
    double = PointCloud(X, Y)
    exact, _ = least(lambda: double.lse_rows(g, eta), 2)
    run = lambda k: ot.bregman.empirical_sinkhorn(  # noqa: E731
        X, Y, eta, numIterMax=k, isLazy=True, batchSize=1000, warn=False, stopThr=0
    )
    one, _ = least(lambda: run(1), 1)
    three, _ = least(lambda: run(3), 1)
    theirs = (three - one) / 4  # two more iterations are four half-sweeps
    CONSOLE.print(
        f"half-sweep at n = {n}: POT lazy {theirs:.2f} s, ours float32 {ours:.3f} s "
        f"({theirs / ours:.1f}x), float64 {exact:.3f} s ({theirs / exact:.1f}x)"
    )


def peak():
    """Return the peak memory of this process in GiB."""
    return measuring.peak() / 2**30


PARTS = {
    "grid": grid_part,
    "megapixel": megapixel_part,
    "square": square_part,
    "points": points_part,
    "million": million_part,
    "sweep": sweep_part,
}


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.part:
        PARTS[options.part](options.quick)
        return
    for part in PARTS:  # a process each, so that each part's peak memory is its own
        extra = ["--quick"] if options.quick else []
        subprocess.run(
            [sys.executable, "-m", "epsilot_lab", "geometry", "--part", part, *extra], check=True
        )
