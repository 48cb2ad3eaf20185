"""How close an epoch of PDASMD is to the cost of its exponentials.

    python benchmarks/pdasmd.py            # n = 1024 and 4096
    python benchmarks/pdasmd.py --quick    # n = 256

Everything runs on one thread, interleaved, in the same process. The floor is 3 n² vectorised
float64 exponentials (an epoch in float32 may be below it): of the cost, read row by row as an
epoch must read it, and of one row that stays in the cache. The rival is the listing in plain
NumPy, one row at a time, timed on a part of its inner loop. Times are the least CPU time of
several repeats.
"""

from __future__ import annotations

import argparse

import numpy as np
from numba import njit

from epsilot import parallel
from epsilot.geometry import Dense
from epsilot.kernels.compiling import KERNEL
from epsilot.kernels.exp_log import exp
from epsilot.problems.problem import Entropic
from epsilot.solvers.pdasmd import PDASMD
from epsilot_lab.instances import random
from epsilot_lab.measuring import in_turns, timed

MODES = {
    "certificate": {"average": "none", "precision": "single"},
    "same, double": {"average": "none", "precision": "double"},
    "paper": {"average": "sampled", "precision": "double"},
}


@njit(**{**KERNEL, "cache": False})
def exp_row(x, out):
    for j in range(x.size):
        out[j] = exp(x[j])


@njit(**{**KERNEL, "cache": False})
def exp_rows(X, is_cached, out):
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


def measure(n, n_repeats=7, n_steps=200):
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n = 256")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096])
    chosen = parser.parse_args(arguments)
    return {n: measure(n) for n in ([256] if chosen.quick else chosen.sizes)}


if __name__ == "__main__":
    main()
