"""Map a function over many items on the workers, in order, and send shared arrays once."""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from .. import parallel
from .._types import Array
from ..version import __version__
from .cluster import TUNING, Cluster, check_version

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any


Item = TypeVar("Item")
Result = TypeVar("Result")


class Payload(NamedTuple):
    """A pickled item, and the shared arrays that it refers to by index."""

    data: bytes
    shared: list[Array]


class _Pickler(pickle.Pickler):
    """Pickle an item; refer by index to large arrays that the previous item also had."""

    def __init__(self, file: io.BytesIO, before: dict[int, Array]) -> None:
        super().__init__(file, protocol=5)
        self.before = before
        self.large: dict[int, Array] = {}
        self.shared: dict[int, Array] = {}

    def persistent_id(self, x: object) -> int | None:
        if type(x) is not np.ndarray or x.nbytes < TUNING.min_shared_bytes or x.dtype.kind == "O":
            return None
        self.large[id(x)] = x
        if id(x) not in self.before:
            return None
        self.shared[id(x)] = x
        return list(self.shared).index(id(x))


def payloads(items: Iterable[object]) -> Iterator[Payload]:
    """Yield the payload of each item."""
    before: dict[int, Array] = {}
    for item in items:
        file = io.BytesIO()
        pickler = _Pickler(file, before)
        pickler.dump(item)
        before = pickler.large
        yield Payload(file.getvalue(), list(pickler.shared.values()))


def _groups(packed: Iterable[Payload], n_first: int) -> Iterator[list[Payload]]:
    """Group payloads into tasks: few items in the first ``n_first``, and limited bytes in all."""
    group: list[Payload] = []
    n_bytes = n_groups = 0
    for payload in packed:
        if group and n_bytes + len(payload.data) > TUNING.max_task_bytes:
            yield group
            group, n_bytes, n_groups = [], 0, n_groups + 1
        group.append(payload)
        n_bytes += len(payload.data)
        if len(group) >= (TUNING.first_task_items if n_groups < n_first else TUNING.task_items):
            yield group
            group, n_bytes, n_groups = [], 0, n_groups + 1
    if group:
        yield group


def in_order(
    cluster: Cluster, function: Callable[[Item], Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """Yield ``function(item)`` in order, while workers compute the next ones.

    The function must be defined in a module, or be a ``functools.partial`` of such a function. The
    tasks of a lost worker go to another. Closing the generator cancels the pending tasks.
    """
    pending: deque[tuple[list[Payload], list[Future]]] = deque()

    def submit(group: list[Payload]) -> list[Future]:
        sent = [(item.data, [cluster.send_once(x) for x in item.shared]) for item in group]
        return cluster.map(results_of, [__version__], [function], [sent])

    def first() -> list[Result]:
        group, futures = pending.popleft()
        results: list[Result] = cluster.gather(lambda: submit(group), futures)[0]
        cluster.release_all_but(x for group, _ in pending for item in group for x in item.shared)
        return results

    for group in _groups(payloads(items), TUNING.first_tasks_per_slot * cluster.slots):
        pending.append((group, submit(group)))
        if len(pending) > TUNING.pending_tasks_per_slot * cluster.slots:
            yield from first()
    while pending:
        yield from first()


# -- functions that run on workers --------------------------------------------------------------


class _Unpickler(pickle.Unpickler):
    """Unpickle a payload, whose shared arrays are given by index."""

    def __init__(self, data: bytes, shared: Sequence[Array]) -> None:
        super().__init__(io.BytesIO(data))
        self.shared = shared

    def persistent_load(self, index: int) -> Array:
        return self.shared[index]


def results_of(
    version: str,
    function: Callable[[Any], object],
    payloads: Sequence[tuple[bytes, Sequence[Array]]],
) -> list[object]:
    """Return the results of a function on payloads, computed in one thread."""
    check_version(version)
    with parallel.limit(1):
        return [function(_Unpickler(*payload).load()) for payload in payloads]
