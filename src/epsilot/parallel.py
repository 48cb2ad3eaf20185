"""Share a kernel's index range among threads.

Kernels release the GIL and write disjoint slices of their outputs, so the result does not
depend on the number of threads. (numba's own ``parallel=True`` is avoided: its default
threading layer aborts the process when two Python threads enter it at once.)
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, Token
from functools import cache
from typing import TypeVar

from . import deadline

# Matrix entries below which handing work to a thread (about 50 µs) costs more than it saves.
MIN_ENTRIES_PER_THREAD = 1 << 16
# Matrix entries of the first slice of a pass that has a deadline, and seconds of the later ones.
SLICE_ENTRIES, SLICE_SECONDS = 1 << 20, 0.1

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_limit: ContextVar[int | None] = ContextVar("epsilot_threads", default=None)


class _Limit:
    """The context of a number of threads; a class, since a generator takes twice as long."""

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
    """Use at most ``n_threads`` threads inside the block (None: as many as around it)."""
    return _Limit(n_threads)


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
    """Call ``kernel(*args, start, stop)`` on slices that cover ``range(n_items)``.

    With a deadline, a long pass looks at it about every 0.1 s.
    """
    if n_entries <= MIN_ENTRIES_PER_THREAD:
        kernel(*args, 0, n_items)
        return
    deadline.check()
    if n_entries <= SLICE_ENTRIES or not deadline.is_set():
        _share_range(kernel, 0, n_items, n_entries, args)
        return
    start, per_item = 0, n_entries / max(n_items, 1)
    least = available()
    size = max(least, int(SLICE_ENTRIES / per_item))
    while start < n_items:
        stop, began = min(start + size, n_items), time.perf_counter()
        _share_range(kernel, start, stop, int((stop - start) * per_item), args)
        seconds = time.perf_counter() - began
        size = max(least, int(size * SLICE_SECONDS / max(seconds, 1e-6)))
        start = stop
        if start < n_items:
            deadline.check()


def _share_range(
    kernel: Callable[..., None], start: int, stop: int, n_entries: int, args: tuple[object, ...]
) -> None:
    """Call ``kernel(*args, first, last)`` on parts of ``range(start, stop)``, one per thread."""
    n_items = stop - start
    most = min(n_items, n_entries // MIN_ENTRIES_PER_THREAD)
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
