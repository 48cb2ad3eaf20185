"""Time the kernels beside NumPy and SciPy.

    python -m epsilot_lab kernels [--size 2048] [--rounds 7]

Times are the least wall seconds of several repeats, in turns.
"""

from __future__ import annotations

import argparse

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table
from scipy.special import logsumexp

from epsilot import parallel
from epsilot.geometry import Dense
from epsilot.kernels.exp_log import exp

from .. import numpy_kernels as reference
from ..measuring import in_turns


@njit(cache=True, nogil=True)
def exp_all(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


def least_walls(calls, rounds):
    """Return the least wall seconds of each peer over rounds in turns, after a warm-up."""
    in_turns(calls, 1)
    return {name: runs.least.wall for name, runs in in_turns(calls, rounds).items()}


def on(n_threads, run):
    """Return ``run`` with a limit on its threads."""

    def limited():
        with parallel.limit(n_threads):
            run()

    return limited


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    n, eta = options.size, 0.05
    rng = np.random.default_rng(0)
    C, f, g = rng.random((n, n)), rng.random(n), rng.random(n)
    geometry = Dense(C)

    table = Table("pass over C", "peer", "peer ms", "1 thread ms", "ratio", "2 threads ms", "gain")
    for name, peer, theirs, ours in (
        ("row log-sum-exp", "scipy.special.logsumexp",
         lambda: logsumexp((g - C) / eta, axis=1), lambda: geometry.lse_rows(g, eta)),
        ("column log-sum-exp", "scipy.special.logsumexp",
         lambda: logsumexp((f[:, None] - C) / eta, axis=0), lambda: geometry.lse_cols(f, eta)),
        ("both marginals", "NumPy",
         lambda: reference.log_marginals(C, f, g, eta),
         lambda: geometry.log_marginals(f, g, eta)),
        ("row c-transform", "NumPy",
         lambda: reference.ctransform_rows(C, g), lambda: geometry.ctransform_rows(g)),
        ("column c-transform", "NumPy",
         lambda: (C - f[:, None]).min(axis=0), lambda: geometry.ctransform_cols(f)),
    ):  # fmt: skip
        t = least_walls({"peer": theirs, "one": on(1, ours), "two": on(2, ours)}, options.rounds)
        table.add_row(
            name,
            peer,
            f"{1e3 * t['peer']:.2f}",
            f"{1e3 * t['one']:.2f}",
            f"{t['peer'] / t['one']:.1f}x",
            f"{1e3 * t['two']:.2f}",
            f"{t['one'] / t['two']:.2f}x",
        )
    for dtype in (np.float64, np.float32):
        x = (-30 * rng.random(20_000)).astype(dtype)
        out = np.empty_like(x)
        calls = {"peer": lambda: np.exp(x, out=out), "one": lambda: exp_all(x, out)}  # noqa: B023
        t = least_walls(calls, 50 * options.rounds)
        table.add_row(
            f"exp, {x.size} {x.dtype} in cache",
            "numpy.exp",
            f"{1e3 * t['peer']:.4f}",
            f"{1e3 * t['one']:.4f}",
            f"{t['peer'] / t['one']:.1f}x",
            "",
            "",
        )
    console = Console(width=118)
    console.print(f"{n} x {n}, float64; best of {options.rounds} interleaved rounds")
    console.print(table)
