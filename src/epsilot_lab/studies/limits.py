"""Measure by how much a limit or an interruption is overrun, the final proof included.

    python -m epsilot_lab limits                     # max_seconds=3, and SIGINT after 2 s
    python -m epsilot_lab limits --only "50-d" --scale 0.5

Each case runs in a process of its own, after a small solve of the same kind has compiled what it
needs. The overrun is counted from the limit, or from the signal, to the return of the call: in
seconds of the wall clock, and of the processor (of all threads, and of child processes). The
requirement is at most max(1 s, 10 % of the limit) of wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

import epsilot

from ..document import markdown_row

#: Points of the compiling solve.
WARM = 40


def cloud(n: int, d: int, *, is_weighted: bool = False, **keywords: object) -> Callable[[], object]:
    """Return a solve of two Gaussian clouds."""
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(2, n, d))
    Y += 0.5
    if is_weighted:
        a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
        return partial(epsilot.solve_sample, X, Y, a, b, lazy=True, **keywords)
    return partial(epsilot.solve_sample, X, Y, lazy=True, **keywords)


def dense(n: int, **keywords: object) -> Callable[[], object]:
    """Return a solve of a random cost."""
    return partial(epsilot.solve, np.random.default_rng(5).random((n, n)), **keywords)


def grid(n: int, **keywords: object) -> Callable[[], object]:
    """Return a solve of two random images of n cells."""
    side = max(int(n**0.5), 2)
    a, b = np.random.default_rng(5).dirichlet(np.ones(side * side), 2).reshape(2, side, side)
    return partial(epsilot.solve_grid, a, b, **keywords)


def barycenter(n: int, **keywords: object) -> Callable[[], object]:
    """Return a barycentre of eight histograms on n points of a square."""
    rng = np.random.default_rng(5)
    A, X = rng.dirichlet(np.ones(n), 8), rng.random((n, 2))
    return partial(epsilot.barycenter, A, ((X[:, None] - X) ** 2).sum(axis=-1), **keywords)


#: Case -> the function that makes it, and its number of points.
CASES: dict[str, tuple[Callable[..., Callable[[], object]], int]] = {
    "cloud 50-d": (partial(cloud, d=50), 20_000),
    "cloud 50-d, larger": (partial(cloud, d=50), 50_000),
    "cloud 50-d, sinkhorn": (partial(cloud, d=50, method="sinkhorn"), 20_000),
    "cloud 3-d, weighted, Euclidean": (
        partial(cloud, d=3, is_weighted=True, metric="euclidean"),
        100_000,
    ),
    "cloud 2-d, TV": (partial(cloud, d=2, unbalanced=0.5, unbalanced_type="tv"), 30_000),
    "cloud 2-d, KL": (partial(cloud, d=2, unbalanced=0.5), 30_000),
    "cloud 2-d, partial": (partial(cloud, d=2, mass=0.5), 30_000),
    "cloud 2-d, partial, reg=0.01": (partial(cloud, d=2, mass=0.5, reg=0.01), 30_000),
    "cloud 2-d, reg=1e-4": (partial(cloud, d=2, reg=1e-4), 20_000),
    "dense, exact": (partial(dense, method="exact"), 5_000),
    "dense, sinkhorn": (partial(dense, method="sinkhorn", rtol=1e-6), 5_000),
    "dense, pdasmd": (partial(dense, method="pdasmd", rtol=1e-6), 5_000),
    "dense, greenkhorn": (partial(dense, method="greenkhorn", rtol=1e-6), 5_000),
    "dense, packing_lp": (partial(dense, method="packing_lp", rtol=1e-6), 5_000),
    "grid, sinkhorn": (partial(grid, method="sinkhorn", rtol=1e-6), 1_000_000),
    "barycentre, exact": (partial(barycenter, method="exact", rtol=1e-9), 400),
}


def spent() -> float:
    """Return the processor seconds of this process and of its children."""
    times = os.times()
    return sum(times[:4])


def measure(name: str, how: str, seconds: float, n: int) -> dict[str, object]:
    """Run one case and return what it spent beyond its limit."""
    make, _ = CASES[name]
    warnings.simplefilter("ignore")
    make(min(n, WARM))(on_limit="ignore")  # type: ignore[call-arg]
    solve = make(n)
    limit = {"max_seconds": seconds} if how == "max_seconds" else {}
    at: list[tuple[float, float]] = []

    def note() -> None:
        at.append((time.perf_counter(), spent()))
        if how != "max_seconds":
            os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, note)
    timer.start()
    result = solve(on_limit="ignore", **limit)  # type: ignore[call-arg]
    ended = time.perf_counter(), spent()
    timer.cancel()
    wall, cpu = (y - x for x, y in zip(at[0], ended, strict=True)) if at else (0.0, 0.0)
    return {
        "wall": wall,
        "cpu": cpu,
        "status": result.status.name,  # type: ignore[attr-defined]
        "value": result.value,  # type: ignore[attr-defined]
        "lower": result.lower_bound,  # type: ignore[attr-defined]
    }


def main(argv: list[str] | None = None) -> None:
    """Print a table of overruns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    parser.add_argument("--scale", type=float, default=1.0, help="multiple of the sizes")
    parser.add_argument("--limit", type=float, default=3.0, help="max_seconds")
    parser.add_argument("--signal", type=float, default=2.0, help="seconds before SIGINT")
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.case:
        name, how, n = arguments.case
        seconds = arguments.limit if how == "max_seconds" else arguments.signal
        print(json.dumps(measure(name, how, seconds, int(n))))
        return
    print(markdown_row(["case", "n", "limit", "status", "over, s", "processor s", "bounds"]))
    print(markdown_row(["---"] * 7))
    for name, (_, size) in CASES.items():
        if arguments.only not in name:
            continue
        n = max(int(size * arguments.scale), 8)
        for how in ("max_seconds", "SIGINT"):
            options = ["--limit", str(arguments.limit), "--signal", str(arguments.signal)]
            command = [
                sys.executable,
                "-m",
                "epsilot_lab",
                "limits",
                *options,
                "--case",
                name,
                how,
                str(n),
            ]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode:
                print(markdown_row([name, f"{n:,}", how, ran.stderr.strip()[-200:], "", "", ""]))
                continue
            found = json.loads(ran.stdout.splitlines()[-1])
            bounds = f"{found['lower']:.4g} .. {found['value']:.4g}"
            over = f"{found['wall']:.2f}", f"{found['cpu']:.2f}"
            print(markdown_row([name, f"{n:,}", how, found["status"], *over, bounds]), flush=True)
