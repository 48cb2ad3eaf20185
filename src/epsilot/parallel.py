"""Share a kernel's index range among threads.

Kernels release the GIL and write disjoint slices of their outputs, so the result does not
depend on the number of threads. (numba's own ``parallel=True`` is avoided: its default
threading layer aborts the process when two Python threads enter it at once.)
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TypeVar

# Matrix entries below which handing work to a thread (about 50 µs) costs more than it saves.
MIN_ENTRIES_PER_THREAD = 1 << 16

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_limit: ContextVar[int | None] = ContextVar("epsilot_threads", default=None)


@contextmanager
def limit(n_threads: int | None) -> Iterator[None]:
    """Use at most ``n_threads`` threads inside the block (None: as many as around it)."""
    token = _limit.set(_limit.get() if n_threads is None else n_threads)
    try:
        yield
    finally:
        _limit.reset(token)


def available() -> int:
    """Return the number of threads kernels may use."""
    allowed = _limit.get()
    if allowed is not None:
        return max(1, allowed)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(n_threads: int, pid: int) -> ThreadPoolExecutor:
    """Return the pool of one process; the pid keeps forked children from reusing it."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="epsilot")


def share(kernel: Callable[..., None], n_items: int, n_entries: int, *args: object) -> None:
    """Call ``kernel(*args, start, stop)`` on slices that cover ``range(n_items)``."""
    most = min(n_items, n_entries // MIN_ENTRIES_PER_THREAD)
    n_threads = min(available(), most) if most > 1 else 1
    if n_threads <= 1:
        kernel(*args, 0, n_items)
        return
    edges = [n_items * k // n_threads for k in range(n_threads + 1)]
    pool = _pool(n_threads - 1, os.getpid())
    futures = [pool.submit(kernel, *args, edges[k], edges[k + 1]) for k in range(1, n_threads)]
    kernel(*args, edges[0], edges[1])
    for future in futures:
        future.result()


def in_order(
    function: Callable[[Item], Answer], items: Iterable[Item]
) -> Generator[Answer, None, None]:
    """Yield the answer to each item, in their order, while threads work ahead on the next ones."""
    n_threads = available()
    if n_threads <= 1:
        for item in items:
            yield function(item)
        return
    pool = _pool(n_threads, os.getpid())
    held: deque[Future[Answer]] = deque()
    try:
        for item in items:
            held.append(pool.submit(function, item))
            if len(held) > 2 * n_threads:
                yield held.popleft().result()
        while held:
            yield held.popleft().result()
    finally:
        for future in held:
            if not future.cancel():
                future.exception()


def _is_crowded() -> bool:
    """Tell whether other programs keep the cores busy: threads in step would wait for them."""
    if not hasattr(os, "getloadavg"):
        return False
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5


def lead(
    leader: Callable[[], None], helper: Callable[[int], None], n_helpers: int, is_worth_it: bool
) -> None:
    """Run ``leader()`` here, with ``helper(k)`` beside it where threads are to be had.

    Helpers must be dispensable: they may start late, or not at all.
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
