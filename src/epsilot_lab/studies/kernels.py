"""Time the kernels beside NumPy and SciPy, and epochs of PDASMD beside their exponentials.

    python -m epsilot_lab kernels [--size 2048] [--rounds 7]
    OMP_NUM_THREADS=1 python -m epsilot_lab kernels --epochs 1024 4096

An epoch of PDASMD needs about 3 n² exponentials. The floor is the time of 3 n² vectorised float64
exponentials: of the cost, read row by row as an epoch must read it, and of one row that stays in
the cache. The NumPy listing runs one row at a time; it is timed on a part of its inner loop. Times
are the least processor seconds of several repeats on one thread, in turns.
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
from epsilot.kernels.compiling import KERNEL
from epsilot.kernels.exp_log import exp
from epsilot.problems.problem import Entropic
from epsilot.solvers.pdasmd import PDASMD

from .. import numpy_kernels as reference
from ..instances import random
from ..measuring import in_turns, timed


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


# -- epochs of PDASMD ---------------------------------------------------------------------------

MODES = {
    "certificate": {"average": "none", "precision": "single"},
    "same, double": {"average": "none", "precision": "double"},
    "paper": {"average": "sampled", "precision": "double"},
}


@njit(**{**KERNEL, "cache": False})
def exp_row(x, out):
    """Write the exponentials of a row."""
    for j in range(x.size):
        out[j] = exp(x[j])


@njit(**{**KERNEL, "cache": False})
def exp_rows(X, is_cached, out):
    """Write the exponentials of all rows three times, or of the first row as often."""
    for _ in range(3):
        for i in range(X.shape[0]):
            exp_row(X[0 if is_cached else i], out)


def softmax(t):
    e = np.exp(t - t.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_epoch(problem, n_steps):
    """Time one outer loop of the listing in NumPy, scaled up from ``n_steps`` inner steps."""
    C, eta, p, q = problem.geometry.C, problem.eta, problem.p, problem.q
    n, m = C.shape
    rng = np.random.default_rng(0)
    y = z = v_snap = np.zeros(m)
    L = 5 * n * p / eta
    L_bar = L.mean()
    law = L / (n * L_bar)
    n_steps = min(n_steps, n)
    plan, kept, tau1, tau2 = np.zeros((n, m)), np.zeros((n, m)), 0.5, 0.5

    def component_gradient(i, lam):
        return n * p[i] * (softmax((lam - C[i]) / eta) - q)

    alpha = 1 / (9 * tau1 * L_bar)  # step 3

    def outer():
        mu = p @ softmax((v_snap - C) / eta) - q  # step 4
        snapshot = kept.mean(axis=0)  # step 13
        weight = 1 / tau1  # step 14
        _ = (plan + p[:, None] * softmax((y - C) / eta) / tau1) / weight  # steps 15, 16
        return mu, snapshot

    def inner(mu, snapshot, y, z):
        for j in range(n_steps):
            v = tau1 * z + tau2 * snapshot + (1 - tau1 - tau2) * y  # step 7
            i = rng.choice(n, p=law)  # step 8
            difference = component_gradient(i, v) - component_gradient(i, snapshot)
            g = mu + difference / (n * law[i])  # step 9
            z = z - alpha * g  # step 10
            y = v - np.abs(g).sum() / (9 * L_bar) * np.where(g > 0, 1.0, -1.0)  # step 11
            kept[j] = y

    once, (mu, snapshot) = timed(outer)
    steps, _ = timed(lambda: inner(mu, snapshot, y, z))
    return once.thread + steps.thread * n / n_steps


def measure_epochs(n, n_repeats=7, n_steps=200):
    """Print and return the ratios of one size."""
    C, p, q = random(n, n, concentration=5.0)
    rng = np.random.default_rng(n)
    problem = Entropic(Dense(C), 0.01, p, q)
    out, negative = np.empty(n), -C / 0.01
    jobs = {
        "floor, cost": lambda: exp_rows(negative, False, out),
        "floor, cached row": lambda: exp_rows(negative, True, out),
    }
    for mode, options in MODES.items():
        solver = PDASMD(smoothness="paper", step_constant=9.0, is_adaptive=False, **options)
        state, _ = solver.init(problem, rng)
        jobs[mode] = lambda solver=solver, state=state: solver.step(problem, state, rng)
    for job in jobs.values():
        job()
    with parallel.limit(1):
        least = {name: runs.least.thread for name, runs in in_turns(jobs, n_repeats).items()}
        plain = min(numpy_epoch(problem, n_steps) for _ in range(n_repeats))
    print(
        f"\nn = {n}: 3n² exponentials take {1e3 * least['floor, cost']:.1f} ms over the cost, "
        f"{1e3 * least['floor, cached row']:.1f} ms over a cached row"
    )
    ratios = {}
    for mode in MODES:
        epoch = least[mode]
        ratios[mode] = epoch / least["floor, cost"], plain / epoch
        print(
            f"  {mode:<12} epoch {1e3 * epoch:7.1f} ms: {ratios[mode][0]:.2f}x the floor [2.5], "
            f"{epoch / least['floor, cached row']:.2f}x the cached one; NumPy listing "
            f"{1e3 * plain:.0f} ms, {ratios[mode][1]:.0f}x slower [30]"
        )
    return ratios


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, nargs="+", metavar="N", help="epochs of PDASMD only")
    options = parser.parse_args(arguments)
    if options.epochs:
        for n in options.epochs:
            measure_epochs(n)
        return
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
