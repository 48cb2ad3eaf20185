"""Pairs of histograms with one cost for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..._types import Array, Index, Matrix, Vector
from ...arguments import as_numpy, numeric
from ...errors import InvalidProblem
from ...kernels.histograms import Histograms
from ...kernels.small import Problems
from ...transport.problem import tolerance_of
from .packing import flat, masses, places
from .source import Chunk, Given, chunk_size, digest_of


@dataclass(frozen=True)
class Rows:
    """Histograms as rows: as they were given, and without their zeros."""

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


def rows_of(H: ArrayLike | sparse.sparray, name: str, size: int, normalize: bool) -> Rows:
    """Return histograms of a size, whose zeros are dropped here once and for all."""
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
            f"{name} has shape {given.shape}; it must hold one histogram a row, of one weight for "
            f"each of the {size} places of the cost."
        )
    kept = masses(entries, starts, normalize)
    if hasattr(H, "tocsr"):
        at = np.repeat(starts[:-1], np.diff(kept.starts)) + kept.places[: kept.starts[-1]]
        kept = kept._replace(places=np.asarray(given.indices[at], np.int64))
    return Rows(given, kept._replace(sizes=np.full(given.shape[0], size)))


@dataclass(frozen=True)
class PairChunk:
    """Some pairs of histograms."""

    first: int
    M: Matrix
    sources: Rows
    targets: Rows
    pairs: Index
    normalize: bool
    tolerance: float

    def __len__(self) -> int:
        return len(self.pairs)

    def packed(self) -> Problems:
        """Return the problems as the compiled solver takes them."""
        of = np.zeros((len(self.pairs), 3), np.int64)
        of[:, 1:] = self.pairs
        return Problems(
            flat(self.M), np.zeros(1, np.int64), self.sources.kept, self.targets.kept, of
        )

    def given(self, k: int) -> Given:
        """Return the k-th of these problems."""
        i, j = self.pairs[k]
        return Given(self.M, self.sources.row(i), self.targets.row(j))


@dataclass(frozen=True)
class Pairs:
    """Pairs of histograms and their cost."""

    M: Matrix
    sources: Rows
    targets: Rows
    pairs: Index
    normalize: bool

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return len(self.pairs)

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield all pairs from number ``first`` on."""
        n, m = (
            float(np.diff(side.kept.starts).mean()) if len(side) else 1.0
            for side in (self.sources, self.targets)
        )
        step = chunk_size(n, m, self.size)
        for start in range(first, self.size, step):
            yield self._slice(start, start + step)

    def only(self, k: int) -> Chunk:
        """Return one pair."""
        return self._slice(k, k + 1)

    def _slice(self, start: int, stop: int) -> PairChunk:
        tolerance = max(tolerance_of(x.given) for x in (self.sources, self.targets))
        pairs = self.pairs[start:stop]
        return PairChunk(
            start, self.M, self.sources, self.targets, pairs, self.normalize, tolerance
        )

    def digest(self) -> str:
        """Return a hash of cost, histograms and pairs."""
        sides = [x for side in (self.sources, self.targets) for x in side.kept]
        return digest_of((self.normalize, self.M, *sides, self.pairs))
