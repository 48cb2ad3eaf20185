"""Check time limits and Ctrl-C: a call returns at most max(1 s, 10 %) late, with a result.

Lateness is counted in processor seconds, which a busy machine does not change. A watcher, another
process, looks at the processor time of this one when the limit is reached, and interrupts it there
if that is what is tested.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import epsilot
from epsilot.engine.interrupts import forget_interrupts

from .problems import CallRecord, CaseOutcome, Rng, ask, pick

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


#: What a call solves: the function, and the arguments for a size.
Draw = Callable[[Rng, int], tuple[Callable[..., Any], tuple[Any, ...]]]


def cloud(d: int) -> Draw:
    """Return a draw of weighted clouds."""

    def draw(rng: Rng, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 0.5
        return epsilot.solve_sample, (X, Y, *rng.dirichlet(np.ones(n), 2))

    return draw


def dense(rng: Rng, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Draw a stored cost."""
    return epsilot.solve, (rng.random((n, n)), *rng.dirichlet(np.ones(n), 2))


def grid(rng: Rng, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Draw two images of about n cells."""
    side = max(6, math.isqrt(n))
    return epsilot.solve_grid, tuple(rng.dirichlet(np.ones(side**2), 2).reshape(2, side, side))


def barycenter(rng: Rng, n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Draw four histograms on n points of a square."""
    x = rng.random((n, 2))
    M = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    return epsilot.barycenter, (rng.dirichlet(np.ones(n), 4), M)


def batch(n: int) -> Draw:
    """Return a draw of many problems of n rows."""
    return lambda rng, count: (epsilot.solve_batch, (rng.random((count, n, n)),))


FIRST_ORDER = ("sinkhorn", "apdagd", "pdasmd", "box_newton", "dual_extrapolation", "packing_lp")
#: call -> how it is made; each takes longer than its limit
CALLS: dict[str, tuple[Draw, int, dict[str, Any]]] = {
    "cloud in 50-d": (cloud(50), 8000, {"rtol": 1e-3}),
    "weighted Euclidean cloud": (cloud(3), 20_000, {"metric": "euclidean", "rtol": 1e-6}),
    "TV cloud": (cloud(3), 20_000, {"unbalanced": 0.5, "unbalanced_type": "tv", "rtol": 1e-6}),
    "KL cloud": (cloud(3), 20_000, {"unbalanced": 0.5, "rtol": 1e-6}),
    "partial cloud": (cloud(3), 20_000, {"mass": 0.7, "rtol": 1e-6}),
    "cloud with reg": (cloud(3), 20_000, {"reg": 1e-4, "tol": 1e-9}),
    "exact": (dense, 4000, {"method": "exact"}),
    "restricted_simplex": (dense, 2000, {"method": "restricted_simplex", "rtol": 1e-9}),
    "auction": (cloud(3), 20_000, {"method": "auction", "rtol": 1e-9}),
    "dense KL": (dense, 1500, {"unbalanced": 0.5, "rtol": 1e-8}),
    "dense TV": (dense, 1500, {"unbalanced": 0.05, "unbalanced_type": "tv", "rtol": 1e-8}),
    "dense partial": (dense, 1500, {"mass": 0.7, "rtol": 1e-8}),
    "dense with reg": (dense, 2000, {"reg": 1e-4, "tol": 1e-10}),
    "grid": (grid, 256**2, {"rtol": 1e-9}),
    "squared grid": (grid, 400**2, {"metric": "sqeuclidean", "rtol": 1e-6}),
    "barycenter": (barycenter, 400, {"rtol": 1e-8}),
    "exact barycenter": (barycenter, 600, {"method": "exact", "rtol": 1e-9}),
    "lbfgs barycenter": (barycenter, 400, {"method": "lbfgs", "rtol": 1e-8}),
    "batch": (batch(60), 40_000, {"rtol": 1e-9}),
    "batch of large problems": (batch(700), 200, {"rtol": 1e-9}),
    **{f"dense {m}": (dense, 1500, {"method": m, "rtol": 1e-8}) for m in FIRST_ORDER},
}


def drawn(name: str, rng: Rng, share: float) -> Callable[..., Any]:
    """Return a call at a share of its size."""
    draw, size, keywords = CALLS[name]
    solve, arguments = draw(rng, max(12, int(share * size)))
    more = {} if solve is epsilot.solve_batch else {"on_limit": "ignore"}
    return partial(solve, *arguments, **keywords, **more)


def limits(rng: Rng) -> CaseOutcome:
    """Draw a long call, end it by a limit or by a signal, and measure how late it returns."""
    name = pick(rng, dict.fromkeys(CALLS, 1.0))
    way = pick(rng, {"max_seconds": 3, "SIGINT": 2})
    seconds = float(rng.uniform(0.2, 2.0))
    n_threads = int(rng.integers(1, 3))
    outcome = CaseOutcome(way, name, label=f"{name}, {seconds:.2f} s, {n_threads} threads")
    call = drawn(name, rng, 1.0)
    ask(drawn(name, rng, 0.01), max_seconds=0.3, n_threads=n_threads)  # compiles
    late, answer = ended(call, way, seconds, n_threads)
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


def ended(
    call: Callable[..., Any], way: str, seconds: float, n_threads: int | None
) -> tuple[float | None, CallRecord | None]:
    """End a call by its limit or by SIGINT; return how late it came back, and its answer."""
    ask(call, max_seconds=0.3, n_threads=n_threads)  # compiles what a large problem needs
    limit = {"max_seconds": seconds} if way == "max_seconds" else {}
    forget_interrupts()
    number = signal.SIGINT if way == "SIGINT" else 0
    return overshoot(lambda: ask(call, n_threads=n_threads, **limit), seconds, number)


def rough_defects(result: Any) -> list[str]:
    """Say what is wrong with bounds at first sight; other parts prove them."""
    value, lower = np.atleast_1d(result.value), np.atleast_1d(result.lower_bound)
    known = ~np.isnan(value)
    room = 1e-9 * (1 + np.abs(value[known]))
    return [] if (value[known] >= lower[known] - room).all() else ["lower bound above the value"]


def overshoot(call: Callable[[], Any], seconds: float, number: int) -> tuple[float | None, Any]:
    """Return the processor seconds a call spends after a moment, and what it returns.

    The seconds are None if it ends before; the answer is None if the signal ended it. A signal that
    comes when the call has just ended is ignored.
    """
    command = [sys.executable, "-S", "-c", WATCHER, str(os.getpid()), str(seconds), str(number)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with subprocess.Popen(command, **pipes) as watcher:
            assert watcher.stdout is not None
            assert watcher.stdin is not None
            watcher.stdout.readline()
            began, answer = time.perf_counter(), None
            try:
                watcher.stdin.write("\n")
                watcher.stdin.flush()
                answer = call()
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            spent, elapsed = time.process_time(), time.perf_counter() - began
            if elapsed < seconds:
                watcher.kill()
                return None, answer
            text = watcher.stdout.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    return (max(0.0, spent - float(text)) if text else None), answer
