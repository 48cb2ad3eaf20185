"""Read the problems of a batch, cut them into chunks, and pack chunks for compiled code.

Problems are stacked arrays, lists or iterators, pairs of point clouds, or pairs of histograms that
share a cost. A :class:`ProblemSource` yields chunks; a chunk packs its problems side by side.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..._types import Array, Index, Matrix, Vector
from ...arguments import as_numpy, numeric
from ...errors import InvalidProblem
from ...geometry import Geometry
from ...geometry.inputs import cloud_geometry
from ...kernels import small
from ...kernels.points import cloud_costs
from ...kernels.small import Histograms, Problems
from ...kernels.small_simplex import MAX_NODES
from ...labels import columns_as, columns_like, labels_of, weights_like
from ...metrics import MetricKey, MetricLike, compiled_metric
from ...problems import support
from ...problems.problem import make_problem, totals_rtol
from ..tuning import TUNING

#: An argument of a batch: one array for all problems, or a stack, a list or an iterator of arrays.
Many: TypeAlias = ArrayLike | Geometry | Iterable[ArrayLike | Geometry | None]
#: An argument before validation; ``solve`` explains what is wrong with it.
Unchecked: TypeAlias = Any


class GivenProblem(NamedTuple):
    """The arguments of one problem, before validation."""

    M: Unchecked
    a: Unchecked
    b: Unchecked


class Chunk(Protocol):
    """Consecutive problems of a batch, from number ``first`` on, with all that a worker needs."""

    @property
    def first(self) -> int:
        """Number of the first problem."""

    @property
    def normalize(self) -> bool:
        """Whether weights are rescaled to total 1."""

    @property
    def tolerance(self) -> float:
        """Relative difference of the totals of a and b that counts as rounding."""

    def __len__(self) -> int:
        """Return the number of problems."""

    def packed(self) -> Problems:
        """Pack the problems for the compiled solver."""

    def given(self, k: int) -> GivenProblem:
        """Return the arguments of the k-th problem of the chunk."""


class ProblemSource(Protocol):
    """The problems of a batch."""

    @property
    def size(self) -> int | None:
        """The number of problems, if it is known."""

    def chunks(self, first: int, slowdown: float = 1.0) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on, in chunks of about equal work.

        A problem takes ``slowdown`` times the seconds of the compiled solver.
        """

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""

    def digest(self) -> str | None:
        """Return a hash of all problems, unless they come from an iterator."""


def seconds(n: float, m: float) -> float:
    """Estimate the seconds of the compiled solver for an n x m problem."""
    return 1e-6 * (1 + 0.3 * math.sqrt(n * m) + 0.008 * n * m)


def largest_chunk(size: int | None) -> int:
    """Return the most problems per chunk; small batches get small chunks."""
    return (
        TUNING.max_chunk_problems
        if size is None
        else min(TUNING.max_chunk_problems, max(TUNING.small_batch_chunk, size // 8))
    )


def chunk_size(n: float, m: float, size: int, slowdown: float) -> int:
    """Return the number of n x m problems per chunk."""
    return max(1, min(int(TUNING.chunk_seconds / slowdown / seconds(n, m)), largest_chunk(size)))


def digest_of(parts: Iterable[object]) -> str:
    """Return a hash of arrays and other objects."""
    h = hashlib.sha256()
    for x in parts:
        if isinstance(x, tuple):
            h.update(digest_of(x).encode())
            continue
        x = as_numpy(x, "an argument")
        if isinstance(x, Geometry):
            h.update(x.digest().encode())
        elif isinstance(x, np.ndarray) and x.dtype.kind != "O":
            h.update(f"{x.dtype.str} {x.shape}".encode() + np.ascontiguousarray(x).tobytes())
        else:
            h.update(repr(x).encode())
    return h.hexdigest()[:16]


def flat(x: Array) -> Vector:
    """Return a flat read-only view, so that kernels compile for one array type only."""
    x = np.require(x, np.float64, ("C", "A")).reshape(-1).view()
    x.flags.writeable = False
    return np.asarray(x)


def places(sizes: Index) -> Index:
    """Return the offset of each piece, and the end of the last."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


def own(size: int) -> Index:
    """Return, for problems that share no array, the indices of cost, source and target."""
    return np.repeat(np.arange(size)[:, None], 3, axis=1)


def masses(weights: Array, starts: Index, normalize: bool) -> Histograms:
    """Return histograms from concatenated weights."""
    kept = small.without_zeros(flat(weights), starts, np.diff(starts), support.NEGLIGIBLE_MASS)
    return normalized(kept) if normalize else kept


def normalized(side: Histograms) -> Histograms:
    """Return histograms with totals of 1."""
    return side._replace(totals=np.where(side.totals > 0, 1.0, side.totals))


_REAL = np.dtype(np.float64)


def as_matrix(M: object) -> Matrix | None:
    """Return a cost as an array, or None if ``solve`` must validate it."""
    if type(M) is np.ndarray and M.dtype == _REAL and M.ndim == 2 and M.size:
        return M
    try:
        C = None if isinstance(M, Geometry) else numeric(M, "M")
    except InvalidProblem:
        return None
    return None if C is None or C.ndim != 2 or C.size == 0 else C


def as_weights(w: object, size: int) -> Vector | None:
    """Return weights as a vector of the given size, or None if they are missing or do not fit."""
    if type(w) is np.ndarray and w.dtype == _REAL and w.shape == (size,):
        return w
    try:
        x = None if w is None else numeric(w, "weights")
    except InvalidProblem:
        return None
    return None if x is None or x.shape != (size,) else x


#: A cost and weights that every kernel rejects.
_NO_COST, _NO_WEIGHTS = np.full((1, 1), np.nan), np.full(1, np.nan)


def pack(costs: list[Matrix | None], problems: Sequence[GivenProblem], normalize: bool) -> Problems:
    """Pack costs and weights; invalid problems are packed as NaN, which the kernels reject."""
    kept = [_together(C, x.a, x.b) for C, x in zip(costs, problems, strict=True)]
    sizes = np.array([C.shape for C, _, _ in kept], np.int64)
    entries = np.concatenate([C.ravel() for C, _, _ in kept])
    sides = [_side([x[c] for x in kept], sizes[:, c - 1], normalize) for c in (1, 2)]
    return Problems(
        flat(entries), places(sizes[:, 0] * sizes[:, 1]), sides[0], sides[1], own(len(kept))
    )


def _together(
    C: Matrix | None, a: object, b: object
) -> tuple[Matrix, Vector | None, Vector | None]:
    """Return a cost and weights that fit each other, or NaN ones, which every kernel rejects."""
    if C is not None:
        x, y = as_weights(a, C.shape[0]), as_weights(b, C.shape[1])
        if (x is None) == (a is None) and (y is None) == (b is None):
            return C, x, y
    return _NO_COST, _NO_WEIGHTS, _NO_WEIGHTS


def _side(weights: list[Vector | None], sizes: Index, normalize: bool) -> Histograms:
    """Return the histograms of one side; None stands for uniform weights."""
    is_given = np.array([w is not None for w in weights])
    if not is_given.any():
        return small.uniform_histograms(sizes)
    filled = [np.ones(n) if w is None else w for w, n in zip(weights, sizes, strict=True)]
    side = masses(np.concatenate(filled), places(sizes), normalize)
    return side._replace(totals=np.where(is_given, side.totals, 0.0))


@dataclass(frozen=True)
class Shared:
    """An argument that all problems share."""

    value: Unchecked


@dataclass(frozen=True)
class PerProblem:
    """An argument with one entry per problem."""

    values: Sequence[Unchecked]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class FromIterator:
    """An argument with one entry per problem, from an iterator."""

    values: Iterator[Unchecked]


Part = Shared | PerProblem | FromIterator


def _depth(x: object) -> int:
    """Return the dimensions of an array, or of nested sequences by their first entries."""
    if isinstance(x, Geometry):
        return 2
    if hasattr(x, "shape"):
        return len(x.shape)
    if isinstance(x, (list, tuple)):
        return 1 + (_depth(x[0]) if x else 0)
    return 0


def part(x: Unchecked, name: str, depth: int) -> Part:
    """Tell whether x is one array of ``depth`` dimensions for all problems, or one per problem."""
    is_list = isinstance(x, (list, tuple))
    # An entry that is not an array invalidates its own problem, not the whole list.
    found = 1 + max(map(_depth, x), default=depth) if is_list else _depth(x)
    if found == depth + 1 or (is_list and any(entry is None for entry in x)):
        return PerProblem(x)
    if x is None or found == depth:
        return Shared(x)
    if found == 0 and isinstance(x, Iterable) and not isinstance(x, (str, bytes, dict)):
        return FromIterator(iter(x))
    raise InvalidProblem(
        f"{name} has {found} dimensions; it must have {depth} (for all problems) or "
        f"{depth + 1} (one for each), or be a list or an iterator of such arrays."
    )


def n_problems(parts: dict[str, Part]) -> int:
    """Return the number of problems; reject lists and stacks of different lengths."""
    sizes = {name: len(x) for name, x in parts.items() if isinstance(x, PerProblem)}
    if len(set(sizes.values())) > 1:
        received = " and ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InvalidProblem(
            f"{received} problems; each must have as many (one array for all problems needs no "
            "first axis)."
        )
    return next(iter(sizes.values()), 1)


@dataclass(frozen=True)
class ListChunk:
    """Problems of any shapes, with unchecked arguments."""

    first: int
    problems: Sequence[GivenProblem]
    normalize: bool

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def tolerance(self) -> float:
        """Relative difference of totals that counts as rounding in every problem of the chunk."""
        return min(
            (totals_rtol(w) for x in self.problems for w in x[1:] if w is not None), default=0.0
        )

    def packed(self) -> Problems:
        """Pack the problems for the compiled solver."""
        return pack(self.costs(), self.problems, self.normalize)

    def costs(self) -> list[Matrix | None]:
        """Return the cost of each problem, or None if ``solve`` must validate it."""
        return [None if _is_table(x.M) else as_matrix(x.M) for x in self.problems]

    def given(self, k: int) -> GivenProblem:
        """Return the arguments of the k-th problem of the chunk."""
        M, a, b = self.problems[k]
        return GivenProblem(M, *weights_like(M, a, b)) if _is_table(M) else GivenProblem(M, a, b)


#: Makes a chunk from the number of its first problem and the problems.
MakeChunk = Callable[[int, Sequence[GivenProblem]], ListChunk]


@dataclass(frozen=True)
class ListSource:
    """Problems of any shapes, from shared arguments and lists."""

    size: int
    parts: tuple[Shared | PerProblem, ...]
    make: MakeChunk

    def chunks(self, first: int, slowdown: float = 1.0) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on."""
        problems = (self._given(k) for k in range(first, self.size))
        return grouped(problems, first, self.make, slowdown, self.size)

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""
        return self.make(k, [self._given(k)])

    def digest(self) -> str:
        """Return a hash of all problems."""
        return digest_of(x for k in range(self.size) for x in self._given(k))

    def _given(self, k: int) -> GivenProblem:
        return _given(*(x.value if isinstance(x, Shared) else x.values[k] for x in self.parts))


def _given(*parts: Unchecked) -> GivenProblem:
    """Return a problem from its arguments; the first, or the first two, define the cost."""
    *cost, a, b = parts
    return GivenProblem(cost[0] if len(cost) == 1 else tuple(cost), a, b)


@dataclass(frozen=True)
class StreamSource:
    """Problems from iterators, which are not stored."""

    parts: tuple[Part, ...]
    make: MakeChunk
    size: None = None

    def chunks(self, first: int, slowdown: float = 1.0) -> Iterator[Chunk]:
        """Yield all problems that are left in the iterators."""
        streams = [repeat(x.value) if isinstance(x, Shared) else iter(x.values) for x in self.parts]
        return grouped(map(_given, *streams), first, self.make, slowdown)

    def only(self, k: int) -> Chunk:
        """Raise an error: an iterator does not keep its problems."""
        raise InvalidProblem(
            f"problem {k} came from an iterator and was not kept; pass a list or an array to have "
            "the results of single problems (or plans=True, potentials=True for their arrays)."
        )

    def digest(self) -> None:
        """Return None: an iterator can be read only once."""


def grouped(
    problems: Iterable[GivenProblem],
    first: int,
    make: MakeChunk,
    slowdown: float,
    size: int | None = None,
) -> Iterator[Chunk]:
    """Yield chunks of consecutive problems, of about equal work."""
    most = largest_chunk(size)
    group: list[GivenProblem] = []
    work = 0.0
    for problem in problems:
        group.append(problem)
        work += slowdown * seconds(*_shape(problem.M))
        if work >= TUNING.chunk_seconds or len(group) >= most:
            yield make(first, group)
            first, group, work = first + len(group), [], 0.0
    if group:
        yield make(first, group)


def _shape(M: Unchecked) -> tuple[int, int]:
    """Return the shape of a cost, or the sizes of a pair of clouds; (1, 1) of anything else."""
    if type(M) is tuple and len(M) == 2:
        return len(M[0]), len(M[1])
    shape = M.shape if hasattr(M, "shape") else np.shape(M)
    return shape if len(shape) == 2 else (1, 1)


def source_of_parts(given: dict[str, tuple[Unchecked, int]], make: MakeChunk) -> ProblemSource:
    """Return the problems of named arguments; ``given`` has each with its number of dimensions."""
    parts = {
        name: part(x if _is_labelled(x) else as_numpy(x, name), name, depth)
        for name, (x, depth) in given.items()
    }
    size = n_problems(parts)
    known = tuple(x for x in parts.values() if not isinstance(x, FromIterator))
    return (
        StreamSource(tuple(parts.values()), make)
        if len(known) < len(parts)
        else ListSource(size, known, make)
    )


def source_of(M: Unchecked, a: Unchecked, b: Unchecked, normalize: bool) -> ProblemSource:
    """Return the problems of one cost and weights, or of many."""

    def make(first: int, problems: Sequence[GivenProblem]) -> ListChunk:
        return ListChunk(first, problems, normalize)

    if _is_table(M):
        a, b = weights_like(M, a, b)
        a = columns_as(a, labels_of(getattr(M, "index", None)), "a", "the rows of M have")
        b = columns_as(b, labels_of(M.columns), "b", "the columns of M have")
    has_lists = any(isinstance(x, (list, tuple)) for x in (M, a, b))
    has_tables = any(map(_is_table, M if isinstance(M, (list, tuple)) else [M]))
    if not (has_lists and has_tables):  # otherwise each problem matches its own labels
        M, a, b = as_numpy(M, "M"), as_numpy(a, "a"), as_numpy(b, "b")
    source = source_of_parts({"M": (M, 2), "a": (a, 1), "b": (b, 1)}, make)
    if source.size is None or source.size == 0 or not all(map(_is_stackable, (M, a, b))):
        return source
    n, m = M.shape[-2:]
    if any(w is not None and w.shape[-1] != count for w, count in ((a, n), (b, m))):
        make_problem(*source.only(0).given(0), normalize=normalize)  # raises: the shapes do not fit
    return StackSource(source.size, M, a, b, normalize)


def _is_stackable(x: object) -> bool:
    """Tell whether an argument is None, or an array of ordinary numbers."""
    return x is None or (type(x) is np.ndarray and x.dtype.kind in "biuf" and x.size > 0)


@dataclass(frozen=True)
class StackSource:
    """Problems of one shape, from stacked or shared arrays; a chunk of them is one too."""

    size: int
    M: Array  # (n, m), or (size, n, m)
    a: Array | None  # None, (n,) or (size, n)
    b: Array | None
    normalize: bool
    first: int = 0

    def __len__(self) -> int:
        return self.size

    @property
    def tolerance(self) -> float:
        """Relative difference of the totals of a and b that counts as rounding."""
        return max(totals_rtol(self.a), totals_rtol(self.b))

    def chunks(self, first: int, slowdown: float = 1.0) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on."""
        n, m = self.M.shape[-2:]
        step = chunk_size(n, m, self.size, slowdown)
        for start in range(first, self.size, step):
            yield self._slice(start, min(start + step, self.size))

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""
        return self._slice(k, k + 1)

    def _slice(self, start: int, stop: int) -> StackSource:
        M = self.M[start:stop] if self.M.ndim == 3 else self.M
        a, b = (w[start:stop] if w is not None and w.ndim == 2 else w for w in (self.a, self.b))
        return StackSource(stop - start, M, a, b, self.normalize, start)

    def digest(self) -> str:
        """Return a hash of all problems."""
        return digest_of((self.size, self.normalize, self.M, self.a, self.b))

    def packed(self) -> Problems:
        """Pack the problems for the compiled solver."""
        n, m = self.M.shape[-2:]
        of = own(self.size)
        sides = (w is None or w.ndim == 1 for w in (self.a, self.b))
        of[:, [self.M.ndim == 2, *sides]] = 0
        starts = places(np.full(self.size, n * m))
        return Problems(flat(self.M), starts, self._side(self.a, n), self._side(self.b, m), of)

    def _side(self, w: Array | None, size: int) -> Histograms:
        """Return the histograms of one side: one per problem, or one for all."""
        if w is None:
            return small.uniform_histograms(np.array([size]))
        return masses(w, places(np.full(w.size // size, size)), self.normalize)

    def given(self, k: int) -> GivenProblem:
        """Return the arguments of problem number k of these."""
        a, b = (w[k] if w is not None and w.ndim == 2 else w for w in (self.a, self.b))
        return GivenProblem(self.M[k] if self.M.ndim == 3 else self.M, a, b)


def batch_key(metric: MetricLike) -> MetricKey | None:
    """Return the key of a metric whose costs are compiled for many clouds at once, or None."""
    row = compiled_metric(metric)
    is_served = row is not None and row.degree > 0 and row.key[1:] == ((), ())
    return row.key if row is not None and is_served else None


@dataclass(frozen=True)
class CloudChunk(ListChunk):
    """Problems whose costs are those between the points of two clouds, ``M = (X_a, X_b)``."""

    metric: MetricLike

    def given(self, k: int) -> GivenProblem:
        """Return the arguments of the k-th problem; its cost is the geometry of its clouds."""
        M, a, b = self.problems[k]
        X_a, X_b = M
        return GivenProblem(cloud_geometry(X_a, X_b, self.metric), a, b)

    def costs(self) -> list[Matrix | None]:
        """Return the cost of each problem, or None if ``solve`` must validate it."""
        key = batch_key(self.metric)
        if key is None:
            return [self._dense(k) for k in range(len(self))]
        clouds = [_matrices(*x.M) if _is_small(x) else (None, None) for x in self.problems]
        kept = [
            (X, Y)
            for X, Y in clouds
            if X is not None and Y is not None and X.shape[1] == Y.shape[1]
        ]
        sizes = np.array([(len(X), *Y.shape) for X, Y in kept], np.int64).reshape(-1, 3)
        ends = places(sizes[:, 0] * sizes[:, 1])
        out = np.empty(ends[-1])
        X, Y = (flat(np.concatenate([pair[c].ravel() for pair in kept] or [out])) for c in (0, 1))
        cloud_costs(X, Y, key, sizes, out)
        found = iter(
            out[start:stop].reshape(n, m)
            for (n, m, _), start, stop in zip(sizes, ends[:-1], ends[1:], strict=True)
        )
        return [
            None if X is None or Y is None or X.shape[1] != Y.shape[1] else next(found)
            for X, Y in clouds
        ]

    def _dense(self, k: int) -> Matrix | None:
        """Return the cost matrix of a metric that has no compiled kernel for many clouds."""
        try:
            geometry = self.given(k).M
        except InvalidProblem:
            return None
        return geometry.matrix() if geometry.is_dense else None


def _is_table(x: object) -> bool:
    """Tell whether an argument is a data frame, whose columns may have names."""
    return hasattr(x, "columns") and not isinstance(x, Geometry)


def _is_labelled(x: object) -> bool:
    """Tell whether an argument is a data frame or a series."""
    # The index of a series is an array of labels, that of a list a method.
    return _is_table(x) or not callable(getattr(x, "index", callable))


def _matrices(X_a: Unchecked, X_b: Unchecked) -> tuple[Matrix | None, Matrix | None]:
    """Return two clouds as arrays, or None if :func:`cloud_geometry` must validate them."""
    if _is_table(X_a) and _is_table(X_b):
        try:
            X_b = columns_like(X_b, X_a, "X_b", "X_a")
        except InvalidProblem:
            return None, None
    return as_matrix(X_a), as_matrix(X_b)


def _is_small(problem: GivenProblem) -> bool:
    """Tell whether two clouds are small enough for the compiled solver."""
    return sum(map(_n_kept, problem.M, problem[1:])) <= MAX_NODES


def _n_kept(cloud: Unchecked, weights: Unchecked) -> int:
    """Return the number of points with mass, or of all points if the weights are not valid."""
    size = len(cloud) if hasattr(cloud, "__len__") else 0
    known = as_weights(weights, size)
    return size if known is None else int(np.count_nonzero(known))


def clouds_of(
    X_a: Unchecked,
    X_b: Unchecked,
    a: Unchecked,
    b: Unchecked,
    metric: MetricLike,
    normalize: bool,
) -> ProblemSource:
    """Return the problems of two clouds and weights, or of many."""

    def make(first: int, problems: Sequence[GivenProblem]) -> CloudChunk:
        return CloudChunk(first, problems, normalize, metric)

    return source_of_parts({"X_a": (X_a, 2), "X_b": (X_b, 2), "a": (a, 1), "b": (b, 1)}, make)


@dataclass(frozen=True)
class HistogramRows:
    """Histograms as rows of a matrix, with and without their zeros."""

    given: Array | sparse.csr_array
    kept: Histograms

    def __len__(self) -> int:
        return int(self.given.shape[0])

    def row(self, h: int) -> Vector:
        """Return a histogram with its zeros."""
        given = self.given
        if isinstance(given, np.ndarray):
            return np.asarray(given[h])
        out = np.zeros(given.shape[1], given.dtype)
        own = slice(*given.indptr[h : h + 2])
        out[given.indices[own]] = given.data[own]
        return out


def rows_of(H: ArrayLike | sparse.sparray, name: str, size: int, normalize: bool) -> HistogramRows:
    """Read histograms of a given size, and drop their zeros once."""
    if hasattr(H, "tocsr"):
        given = sparse.csr_array(H)
        given.sum_duplicates()
        entries, starts = given.data, np.asarray(given.indptr, np.int64)
    else:
        H = as_numpy(H, name)
        checked = numeric(H, name)
        given = H if isinstance(H, np.ndarray) else checked
        entries, starts = given, places(np.full(len(np.atleast_1d(given)), size))
    if given.ndim != 2 or given.shape[1] != size:
        raise InvalidProblem(
            f"{name} has shape {given.shape}; it must hold one histogram per row, with one "
            f"weight for each of the {size} places of the cost."
        )
    kept = masses(entries, starts, normalize)
    if hasattr(H, "tocsr"):
        at = np.repeat(starts[:-1], np.diff(kept.starts)) + kept.places[: kept.starts[-1]]
        kept = kept._replace(places=np.asarray(given.indices[at], np.int64))
    return HistogramRows(given, kept._replace(sizes=np.full(given.shape[0], size)))


@dataclass(frozen=True)
class PairSource:
    """Pairs of histograms with one cost; a chunk of them is one too."""

    M: Matrix
    sources: HistogramRows
    targets: HistogramRows
    pairs: Index
    normalize: bool
    first: int = 0

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    @property
    def tolerance(self) -> float:
        """Relative difference of the totals of two histograms that counts as rounding."""
        return max(totals_rtol(x.given) for x in (self.sources, self.targets))

    def chunks(self, first: int, slowdown: float = 1.0) -> Iterator[Chunk]:
        """Yield all pairs from number ``first`` on."""
        n, m = (
            float(np.diff(side.kept.starts).mean()) if len(side) else 1.0
            for side in (self.sources, self.targets)
        )
        step = chunk_size(n, m, self.size, slowdown)
        for start in range(first, self.size, step):
            yield replace(self, pairs=self.pairs[start : start + step], first=start)

    def only(self, k: int) -> Chunk:
        """Return one pair."""
        return replace(self, pairs=self.pairs[k : k + 1], first=k)

    def digest(self) -> str:
        """Return a hash of cost, histograms and pairs."""
        sides = [x for side in (self.sources, self.targets) for x in side.kept]
        return digest_of((self.normalize, self.M, *sides, self.pairs))

    def packed(self) -> Problems:
        """Pack the problems for the compiled solver."""
        of = np.zeros((len(self.pairs), 3), np.int64)
        of[:, 1:] = self.pairs
        return Problems(
            flat(self.M), np.zeros(1, np.int64), self.sources.kept, self.targets.kept, of
        )

    def given(self, k: int) -> GivenProblem:
        """Return the arguments of pair number k of these."""
        i, j = self.pairs[k]
        return GivenProblem(self.M, self.sources.row(i), self.targets.row(j))
