"""Problems of any shapes, from lists or iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from ..._types import Matrix
from ...arguments import as_numpy
from ...errors import InvalidProblem
from ...geometry import Geometry
from ...kernels.small import Problems
from ...transport.problem import tolerance_of
from .packing import as_matrix, pack
from .source import (
    CHUNK_SECONDS,
    AsGiven,
    Chunk,
    Given,
    Source,
    digest_of,
    largest_chunk,
    seconds,
)


@dataclass(frozen=True)
class Shared:
    """One thing for all problems."""

    value: AsGiven


@dataclass(frozen=True)
class Each:
    """One thing for each problem."""

    values: Sequence[AsGiven]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class Stream:
    """One thing for each problem, as long as they come."""

    values: Iterator[AsGiven]


Part = Shared | Each | Stream


def _depth(x: object) -> int:
    """Return the dimensions of an array, or of nested sequences by their first entries."""
    if isinstance(x, Geometry):
        return 2
    if hasattr(x, "shape"):
        return len(x.shape)
    if isinstance(x, (list, tuple)):
        return 1 + (_depth(x[0]) if x else 0)
    return 0


def part(x: AsGiven, name: str, depth: int) -> Part:
    """Tell whether x, whose things have so many dimensions, is one of them or many."""
    is_list = isinstance(x, (list, tuple))
    # One entry may be no array at all: it is that problem which is refused, not the list.
    found = 1 + max(map(_depth, x), default=depth) if is_list else _depth(x)
    if found == depth + 1 or (is_list and any(entry is None for entry in x)):
        return Each(x)
    if x is None or found == depth:
        return Shared(x)
    if found == 0 and isinstance(x, Iterable) and not isinstance(x, (str, bytes, dict)):
        return Stream(iter(x))
    raise InvalidProblem(
        f"{name} has {found} dimensions; it must have {depth} (for all problems) or "
        f"{depth + 1} (one for each), or be a list or an iterator of such arrays."
    )


def n_problems(parts: dict[str, Part]) -> int:
    """Return the number of problems that lists and stacks agree on."""
    sizes = {name: len(x) for name, x in parts.items() if isinstance(x, Each)}
    if len(set(sizes.values())) > 1:
        received = " and ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InvalidProblem(
            f"{received} problems; each must have as many (one array for all problems needs no "
            "first axis)."
        )
    return next(iter(sizes.values()), 1)


@dataclass(frozen=True)
class ListChunk:
    """Problems of any shapes, each as it was given."""

    first: int
    problems: Sequence[Given]
    normalize: bool

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def tolerance(self) -> float:
        """Relative difference of totals that is rounding in all of these problems."""
        return min(
            (tolerance_of(w) for x in self.problems for w in x[1:] if w is not None), default=0.0
        )

    def packed(self) -> Problems:
        """Return the problems as the compiled solver takes them."""
        return pack(self.costs(), self.problems, self.normalize)

    def costs(self) -> list[Matrix | None]:
        """Return the cost of each problem, or None where the ordinary path has to look at it."""
        return [as_matrix(x.M) for x in self.problems]

    def given(self, k: int) -> Given:
        """Return the k-th of these problems as the caller gave it."""
        return self.problems[k]


#: Makes a chunk of the problems from a number on.
MakeChunk = Callable[[int, Sequence[Given]], ListChunk]


@dataclass(frozen=True)
class Listed:
    """Problems of any shapes: each part is shared, or there is one for each problem."""

    size: int
    parts: tuple[Shared | Each, ...]
    make: MakeChunk

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on."""
        problems = (self._given(k) for k in range(first, self.size))
        return grouped(problems, first, self.make, self.size)

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""
        return self.make(k, [self._given(k)])

    def digest(self) -> str:
        """Return a hash of all problems."""
        return digest_of(x for k in range(self.size) for x in self._given(k))

    def _given(self, k: int) -> Given:
        return _given(*(x.value if isinstance(x, Shared) else x.values[k] for x in self.parts))


def _given(*parts: AsGiven) -> Given:
    """Return a problem from its parts: the first, or the first two, are the cost."""
    *cost, a, b = parts
    return Given(cost[0] if len(cost) == 1 else tuple(cost), a, b)


@dataclass(frozen=True)
class Streamed:
    """Problems that come one by one and are not kept."""

    parts: tuple[Part, ...]
    make: MakeChunk
    size: None = None

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield all problems; an iterator has no others."""
        streams = [repeat(x.value) if isinstance(x, Shared) else iter(x.values) for x in self.parts]
        return grouped(map(_given, *streams), first, self.make)

    def only(self, k: int) -> Chunk:
        """Refuse: the problem is gone."""
        raise InvalidProblem(
            f"problem {k} came from an iterator and was not kept; pass a list or an array to have "
            "the results of single problems (or plans=True, potentials=True for their arrays)."
        )

    def digest(self) -> None:
        """Say that nothing is known of the problems."""


def grouped(
    problems: Iterable[Given], first: int, make: MakeChunk, size: int | None = None
) -> Iterator[Chunk]:
    """Yield chunks of problems as they come, each of about equal work."""
    most = largest_chunk(size)
    held: list[Given] = []
    work = 0.0
    for problem in problems:
        held.append(problem)
        work += seconds(*_shape(problem.M))
        if work >= CHUNK_SECONDS or len(held) >= most:
            yield make(first, held)
            first, held, work = first + len(held), [], 0.0
    if held:
        yield make(first, held)


def _shape(M: AsGiven) -> tuple[int, int]:
    """Return the shape of a cost, or the sizes of a pair of clouds; (1, 1) of anything else."""
    if type(M) is tuple and len(M) == 2:
        return len(M[0]), len(M[1])
    shape = M.shape if hasattr(M, "shape") else np.shape(M)
    return shape if len(shape) == 2 else (1, 1)


def source_of_parts(given: dict[str, tuple[AsGiven, int]], make: MakeChunk) -> Source:
    """Return the problems of parts that have so many dimensions each, or one more."""
    parts = {name: part(as_numpy(x, name), name, depth) for name, (x, depth) in given.items()}
    size = n_problems(parts)
    known = tuple(x for x in parts.values() if not isinstance(x, Stream))
    return (
        Streamed(tuple(parts.values()), make)
        if len(known) < len(parts)
        else Listed(size, known, make)
    )
