"""What a batch asks of the place that its problems come from, and how they are cut into chunks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...geometry import Geometry
from ...kernels.small import Problems

#: Seconds of compiled work in a chunk: what a thread is given, and what Ctrl-C waits for.
CHUNK_SECONDS = 0.01
#: Problems of a chunk at most, and at most of those of a batch that is not large.
LARGEST_CHUNK, SMALL_CHUNK = 4096, 16


#: A part of all problems: one for all of them, or a stack, a list or an iterator of one for each.
Many: TypeAlias = ArrayLike | Geometry | Iterable[ArrayLike | Geometry | None]
#: A part as it came, perhaps wrong: the ordinary path says in which way.
AsGiven: TypeAlias = Any


class Given(NamedTuple):
    """A problem as the caller gave it."""

    M: AsGiven
    a: AsGiven
    b: AsGiven


class Chunk(Protocol):
    """Some problems of a batch, from number ``first`` on: all that a worker has to know."""

    @property
    def first(self) -> int:
        """Number of the first problem."""

    @property
    def normalize(self) -> bool:
        """Whether weights are rescaled to total 1."""

    @property
    def tolerance(self) -> float:
        """Relative difference of totals that is rounding."""

    def __len__(self) -> int:
        """Return the number of problems."""

    def packed(self) -> Problems:
        """Return the problems as the compiled solver takes them."""

    def given(self, k: int) -> Given:
        """Return the k-th of these problems as the caller gave it."""


class Source(Protocol):
    """The problems of a batch."""

    @property
    def size(self) -> int | None:
        """How many there are, if that is known."""

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on."""

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""

    def digest(self) -> str | None:
        """Return a hash of all problems, if they are at hand."""


def seconds(n: float, m: float) -> float:
    """Return about how long the compiled solver takes for an n x m problem."""
    return 1e-6 * (1 + 0.3 * math.sqrt(n * m) + 0.008 * n * m)


def largest_chunk(size: int | None) -> int:
    """Return how many problems a chunk may have; a batch that is known to be small has a few."""
    return LARGEST_CHUNK if size is None else min(LARGEST_CHUNK, max(SMALL_CHUNK, size // 8))


def chunk_size(n: float, m: float, size: int) -> int:
    """Return how many n x m problems make a chunk."""
    return max(1, min(int(CHUNK_SECONDS / seconds(n, m)), largest_chunk(size)))


def digest_of(parts: Iterable[object]) -> str:
    """Return a hash of arrays and other things."""
    h = hashlib.sha256()
    for x in parts:
        if isinstance(x, Geometry):
            h.update(x.digest().encode())
        elif isinstance(x, np.ndarray) and x.dtype.kind != "O":
            h.update(f"{x.dtype.str} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
        else:
            h.update(repr(x).encode())
    return h.hexdigest()[:16]
