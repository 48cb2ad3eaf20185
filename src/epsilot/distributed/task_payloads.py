"""Items of a long list, answered by workers in order: what neighbours share is sent once."""

from __future__ import annotations

import io
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from .._types import Array
from ..version import __version__
from . import tasks
from .cluster import SLAB, Cluster

if TYPE_CHECKING:
    from distributed import Future
else:
    Future = Any

#: Bytes from which an array that an item has in common with the one before is sent only once.
SHARED = 1 << 14
#: Items of a task: of the first ones, so that all workers begin soon, and of those after them.
FIRST_ITEMS, ITEMS = 4, 32
#: Tasks for each slot that are under way.
AHEAD = 3

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Parcel(NamedTuple):
    """An item as bytes, and the arrays that they name by their place in the list."""

    data: bytes
    shared: list[Array]


class _Pickler(pickle.Pickler):
    """Writes the bytes of a parcel; an array that the item before had too is only named."""

    def __init__(self, file: io.BytesIO, before: dict[int, Array]) -> None:
        super().__init__(file, protocol=5)
        self.before = before
        self.large: dict[int, Array] = {}
        self.shared: dict[int, Array] = {}

    def persistent_id(self, x: object) -> int | None:
        if type(x) is not np.ndarray or x.nbytes < SHARED or x.dtype.kind == "O":
            return None
        self.large[id(x)] = x
        if id(x) not in self.before:
            return None
        self.shared[id(x)] = x
        return list(self.shared).index(id(x))


def parcels(items: Iterable[object]) -> Iterator[Parcel]:
    """Yield items as parcels."""
    before: dict[int, Array] = {}
    for item in items:
        file = io.BytesIO()
        pickler = _Pickler(file, before)
        pickler.dump(item)
        before = pickler.large
        yield Parcel(file.getvalue(), list(pickler.shared.values()))


def _loads(packed: Iterable[Parcel], n_first: int) -> Iterator[list[Parcel]]:
    """Yield what one task takes: few parcels at first, and never many bytes."""
    load: list[Parcel] = []
    n_bytes = n_loads = 0
    for parcel in packed:
        if load and n_bytes + len(parcel.data) > SLAB:
            yield load
            load, n_bytes, n_loads = [], 0, n_loads + 1
        load.append(parcel)
        n_bytes += len(parcel.data)
        if len(load) >= (FIRST_ITEMS if n_loads < n_first else ITEMS):
            yield load
            load, n_bytes, n_loads = [], 0, n_loads + 1
    if load:
        yield load


def in_order(
    cluster: Cluster, function: Callable[[Item], Answer], items: Iterable[Item]
) -> Generator[Answer, None, None]:
    """Yield the answer to each item, in their order, while workers are ahead on the next ones.

    The function must be one of a module, or a ``functools.partial`` of one. The tasks of a lost
    worker go to another; those whose answers nobody waits for any more are cancelled.
    """
    under_way: deque[tuple[list[Parcel], list[Future]]] = deque()

    def ask(load: list[Parcel]) -> list[Future]:
        sent = [(parcel.data, [cluster.hold(x) for x in parcel.shared]) for parcel in load]
        return cluster.map(tasks.answer, [__version__], [function], [sent])

    def first() -> list[Answer]:
        load, futures = under_way.popleft()
        answers: list[Answer] = cluster.gather(lambda: ask(load), futures)[0]
        cluster.drop(x for load, _ in under_way for parcel in load for x in parcel.shared)
        return answers

    for load in _loads(parcels(items), 4 * cluster.slots):
        under_way.append((load, ask(load)))
        if len(under_way) > AHEAD * cluster.slots:
            yield from first()
    while under_way:
        yield from first()
