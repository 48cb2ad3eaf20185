"""Timing for benchmarks: rivals are interleaved, and the best of several rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_times(rivals: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Return the least seconds of each rival over interleaved rounds, after one warm-up."""
    best = dict.fromkeys(rivals, float("inf"))
    for run in rivals.values():
        run()
    for _ in range(rounds):
        for name, run in rivals.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def repeated(call: Callable[[], object], budget: float, least: int = 1) -> list[float]:
    """Return the seconds of as many calls as fit into the budget, at most 25."""
    times: list[float] = []
    while len(times) < least or (sum(times) < budget and len(times) < 25):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times
