"""Check time limits and Ctrl-C: a call returns at most max(1 s, 10 %) late, with a result.

Lateness is counted in processor seconds, which a busy machine does not change. A watcher, another
process, looks at the processor time of this one when the limit is reached, and interrupts it there
if that is what is tested.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import epsilot
from epsilot.engine.interrupts import forget_interrupts

from .problems import Array, CaseOutcome, Rng, ask, pick

#: Seconds by which a limit may be missed, whatever it is, and as a share of it.
LATE, SHARE = 1.0, 0.1
#: Seconds that the watcher takes to look, and the library to load what it calls last.
ROOM = 0.25
#: A program that waits for a line, then looks at another process at a given moment.
WATCHER = """
import os, sys, time
pid, seconds, number = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
time.sleep(seconds)
if number:
    os.kill(pid, number)
fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
print((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), flush=True)
"""


def points(rng: Rng, n: int, d: int) -> tuple[Array, Array]:
    """Return two clouds of n points."""
    return rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 0.5


def cloud(n: int, d: int, **keywords: Any) -> Callable[[Rng, float], Any]:
    """Return a function that makes a call on clouds; the size is scaled down to compile."""

    def make(rng: Rng, share: float) -> Any:
        X, Y = points(rng, max(20, int(n * share)), d)
        weights = [rng.dirichlet(np.ones(len(X))) for _ in range(2)]

        def call(**limit: Any) -> Any:
            return epsilot.solve_sample(X, Y, *weights, on_limit="ignore", **keywords, **limit)

        return call

    return make


def dense(n: int, **keywords: Any) -> Callable[[Rng, float], Any]:
    """Return a function that makes a call on a stored cost."""

    def make(rng: Rng, share: float) -> Any:
        size = max(20, int(n * share))
        M, a, b = rng.random((size, size)), *(rng.dirichlet(np.ones(size)) for _ in range(2))

        def call(**limit: Any) -> Any:
            return epsilot.solve(M, a, b, on_limit="ignore", **keywords, **limit)

        return call

    return make


def grid(side: int, **keywords: Any) -> Callable[[Rng, float], Any]:
    """Return a function that makes a call on images."""

    def make(rng: Rng, share: float) -> Any:
        shape = (max(6, int(side * share**0.5)),) * 2
        images = [rng.dirichlet(np.ones(shape[0] ** 2)).reshape(shape) for _ in range(2)]

        def call(**limit: Any) -> Any:
            return epsilot.solve_grid(*images, on_limit="ignore", **keywords, **limit)

        return call

    return make


def barycenter(n: int, **keywords: Any) -> Callable[[Rng, float], Any]:
    """Return a function that makes a call for a barycentre of histograms."""

    def make(rng: Rng, share: float) -> Any:
        size = max(12, int(n * share))
        x = rng.random((size, 2))
        M = ((x[:, None] - x[None]) ** 2).sum(axis=2)
        A = rng.dirichlet(np.ones(size), 4)

        def call(**limit: Any) -> Any:
            return epsilot.barycenter(A, M, on_limit="ignore", **keywords, **limit)

        return call

    return make


def batch(count: int, n: int) -> Callable[[Rng, float], Any]:
    """Return a function that makes a call for many problems."""

    def make(rng: Rng, share: float) -> Any:
        M = rng.random((max(4, int(count * share)), n, n))

        def call(**limit: Any) -> Any:
            return epsilot.solve_batch(M, rtol=1e-9, **limit)

        return call

    return make


FIRST_ORDER = ("sinkhorn", "apdagd", "pdasmd", "box_newton", "dual_extrapolation", "packing_lp")
#: call -> how it is made; each takes longer than its limit
CALLS: dict[str, Callable[[Rng, float], Any]] = {
    "cloud in 50-d": cloud(8000, 50, rtol=1e-3),
    "weighted Euclidean cloud": cloud(20000, 3, metric="euclidean", rtol=1e-6),
    "TV cloud": cloud(20000, 3, unbalanced=0.5, unbalanced_type="tv", rtol=1e-6),
    "KL cloud": cloud(20000, 3, unbalanced=0.5, rtol=1e-6),
    "partial cloud": cloud(20000, 3, mass=0.7, rtol=1e-6),
    "cloud with reg": cloud(20000, 3, reg=1e-4, tol=1e-9),
    "exact": dense(4000, method="exact"),
    "restricted_simplex": dense(2000, method="restricted_simplex", rtol=1e-9),
    "auction": cloud(20000, 3, method="auction", rtol=1e-9),
    "dense KL": dense(1500, unbalanced=0.5, rtol=1e-8),
    "dense TV": dense(1500, unbalanced=0.05, unbalanced_type="tv", rtol=1e-8),
    "dense partial": dense(1500, mass=0.7, rtol=1e-8),
    "dense with reg": dense(2000, reg=1e-4, tol=1e-10),
    "grid": grid(256, rtol=1e-9),
    "squared grid": grid(400, metric="sqeuclidean", rtol=1e-6),
    "barycenter": barycenter(400, rtol=1e-8),
    "exact barycenter": barycenter(600, method="exact", rtol=1e-9),
    "lbfgs barycenter": barycenter(400, method="lbfgs", rtol=1e-8),
    "batch": batch(40000, 60),
    "batch of large problems": batch(200, 700),
    **{f"dense {name}": dense(1500, method=name, rtol=1e-8) for name in FIRST_ORDER},
}


def limits(rng: Rng) -> CaseOutcome:
    """Draw a long call, end it by a limit or by a signal, and measure how late it returns."""
    name = pick(rng, dict.fromkeys(CALLS, 1.0))
    way = pick(rng, {"max_seconds": 3, "SIGINT": 2})
    seconds = float(rng.uniform(0.2, 2.0))
    n_threads = int(rng.integers(1, 3))
    outcome = CaseOutcome(way, name, label=f"{name}, {seconds:.2f} s, {n_threads} threads")
    call = CALLS[name](rng, 1.0)
    for made in (CALLS[name](rng, 0.01), call):  # compiles what the small and the large one need
        ask(made, max_seconds=0.3, n_threads=n_threads)
    keywords: dict[str, Any] = {"n_threads": n_threads}
    if way == "max_seconds":
        keywords["max_seconds"] = seconds
    number = signal.SIGINT if way == "SIGINT" else 0
    forget_interrupts()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        late, answer = overshoot(lambda: ask(call, **keywords), seconds, number)
    finally:
        signal.signal(signal.SIGINT, before)
    outcome.events["limits"] = int(late is not None)
    if late is not None and not late <= max(LATE, SHARE * seconds) + ROOM:
        outcome.blame(f"{name} returned {late:.2f} processor seconds after its limit")
    if answer is None:
        outcome.ending = "KeyboardInterrupt"  # before there was anything to return
        return outcome
    outcome.blame(*answer.defects)
    outcome.ending = "raised"
    if answer.value is not None:
        result = answer.value
        outcome.ending = "in time" if late is None else "stopped"
        outcome.blame(*rough_defects(result))
    return outcome


def rough_defects(result: Any) -> list[str]:
    """Say what is wrong with bounds at first sight; other parts prove them."""
    value, lower = np.atleast_1d(result.value), np.atleast_1d(result.lower_bound)
    known = ~np.isnan(value)
    room = 1e-9 * (1 + np.abs(value[known]))
    return [] if (value[known] >= lower[known] - room).all() else ["lower bound above the value"]


def overshoot(call: Callable[[], Any], seconds: float, number: int) -> tuple[float | None, Any]:
    """Return the processor seconds a call spends after a moment, and what it returns.

    The seconds are None if it ends before; the answer is None if the signal ended it.
    """
    command = [sys.executable, "-S", "-c", WATCHER, str(os.getpid()), str(seconds), str(number)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdin is not None
        watcher.stdout.readline()
        watcher.stdin.write("\n")
        watcher.stdin.flush()
        began, answer = time.perf_counter(), None
        try:
            answer = call()
            spent, elapsed = time.process_time(), time.perf_counter() - began
            if elapsed < seconds:
                watcher.kill()
                return None, answer
        except KeyboardInterrupt:
            spent = time.process_time()
        text = watcher.stdout.readline()
    return (max(0.0, spent - float(text)) if text else None), answer
