"""Run kernels in several threads.

Kernels release the GIL and write disjoint slices of their outputs, so the result does not depend on
the number of threads. numba's own ``parallel=True`` is not used: its default threading layer aborts
the process when two Python threads enter it at once.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from . import deadline
from .arithmetic import keep_subnormals


@dataclass(frozen=True)
class ThreadTuning:
    """Work for which another thread, or another slice of a pass, pays."""

    # Fewest matrix entries per thread; below, starting a thread (about 50 µs) does not pay.
    min_entries_per_thread: int = 1 << 16
    # Matrix entries of the first slice of a pass with a deadline.
    first_slice_entries: int = 1 << 20
    slice_seconds: float = 0.1  # duration of the later slices, in seconds


TUNING = ThreadTuning()


Item = TypeVar("Item")
Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("epsilot_threads", default=None)


class _Limit:
    """Context manager of `limit`; a class, because a generator takes twice as long."""

    __slots__ = ("n_threads", "token")

    def __init__(self, n_threads: int | None) -> None:
        self.n_threads = n_threads
        self.token: Token[int | None] | None = None

    def __enter__(self) -> None:
        if self.n_threads is not None:
            self.token = _limit.set(self.n_threads)

    def __exit__(self, *error: object) -> None:
        if self.token is not None:
            _limit.reset(self.token)


def limit(n_threads: int | None) -> _Limit:
    """Use at most ``n_threads`` threads inside the block; None keeps the current limit."""
    return _Limit(n_threads)


def available() -> int:
    """Return the number of threads that kernels may use."""
    allowed = _limit.get()
    if allowed is not None:
        return max(1, allowed)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(n_threads: int, pid: int) -> ThreadPoolExecutor:
    """Return the thread pool of a process; with the pid, forked children get their own."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="epsilot", initializer=keep_subnormals)


def share(kernel: Callable[..., None], n_items: int, n_entries: int, *args: object) -> None:
    """Call ``kernel(*args, start, stop)`` on slices that cover ``range(n_items)``.

    A long pass checks its deadline, if there is one, about every 0.1 s.
    """
    if n_entries <= TUNING.min_entries_per_thread:
        kernel(*args, 0, n_items)
        return
    deadline.check()
    if n_entries <= TUNING.first_slice_entries or not deadline.is_set():
        _share_range(kernel, 0, n_items, n_entries, args)
        return
    start, per_item = 0, n_entries / max(n_items, 1)
    n_threads = available()
    size = max(n_threads, int(TUNING.first_slice_entries / per_item))
    while start < n_items:
        stop, began = min(start + size, n_items), time.perf_counter()
        _share_range(kernel, start, stop, int((stop - start) * per_item), args)
        seconds = time.perf_counter() - began
        size = max(n_threads, int(size * TUNING.slice_seconds / max(seconds, 1e-6)))
        start = stop
        if start < n_items:
            deadline.check()


def _share_range(
    kernel: Callable[..., None], start: int, stop: int, n_entries: int, args: tuple[object, ...]
) -> None:
    """Call ``kernel(*args, first, last)`` on parts of ``range(start, stop)``, one per thread."""
    n_items = stop - start
    most = min(n_items, n_entries // TUNING.min_entries_per_thread)
    n_threads = min(available(), most) if most > 1 else 1
    if n_threads <= 1:
        kernel(*args, start, stop)
        return
    edges = [start + n_items * k // n_threads for k in range(n_threads + 1)]
    pool = _pool(n_threads - 1, os.getpid())
    futures = [pool.submit(kernel, *args, edges[k], edges[k + 1]) for k in range(1, n_threads)]
    kernel(*args, edges[0], edges[1])
    for future in futures:
        future.result()


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` in order, while threads compute the next ones."""
    n_threads = available()
    if n_threads <= 1:
        for item in items:
            yield function(item)
        return
    pool = _pool(n_threads, os.getpid())
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            if not future.cancel():
                future.exception()


def _is_crowded() -> bool:
    """Tell whether other programs keep the cores busy, so that synchronised threads would wait."""
    if not hasattr(os, "getloadavg"):
        return False
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5


def lead(
    leader: Callable[[], None], helper: Callable[[int], None], n_helpers: int, is_worth_it: bool
) -> None:
    """Run ``leader()`` in this thread and ``helper(k)`` in up to ``n_helpers`` others.

    The leader must not depend on helpers: they may start late, or not at all.
    """
    n_helpers = min(n_helpers, available() - 1) if is_worth_it and not _is_crowded() else 0
    if n_helpers < 1:
        leader()
        return
    pool = _pool(n_helpers, os.getpid())
    futures = [pool.submit(helper, k) for k in range(n_helpers)]
    leader()
    for future in futures:
        if not future.cancel():
            future.result()
