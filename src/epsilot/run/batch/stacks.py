"""Problems of one shape, in stacked or shared arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._types import Array
from ...kernels import histograms
from ...kernels.histograms import Histograms
from ...kernels.small import Problems
from ...transport.problem import tolerance_of
from .packing import flat, masses, own, places
from .source import Chunk, Given, chunk_size, digest_of


@dataclass(frozen=True)
class StackChunk:
    """Problems of one shape, whose costs and weights are stacked or shared."""

    first: int
    size: int
    M: Array  # (n, m), or (size, n, m)
    a: Array | None  # None, (n,) or (size, n)
    b: Array | None
    normalize: bool
    tolerance: float

    def __len__(self) -> int:
        return self.size

    def packed(self) -> Problems:
        """Return the problems as the compiled solver takes them."""
        n, m = self.M.shape[-2:]
        of = own(self.size)
        sides = (w is None or w.ndim == 1 for w in (self.a, self.b))
        of[:, [self.M.ndim == 2, *sides]] = 0
        starts = places(np.full(self.size, n * m))
        return Problems(flat(self.M), starts, self._side(self.a, n), self._side(self.b, m), of)

    def _side(self, w: Array | None, size: int) -> Histograms:
        """Return the histograms of one side: as many as there are, or one for all."""
        if w is None:
            return histograms.uniform(np.array([size]))
        return masses(w, places(np.full(w.size // size, size)), self.normalize)

    def given(self, k: int) -> Given:
        """Return the k-th of these problems as the caller gave it."""
        a, b = (w[k] if w is not None and w.ndim == 2 else w for w in (self.a, self.b))
        return Given(self.M[k] if self.M.ndim == 3 else self.M, a, b)


@dataclass(frozen=True)
class Stack:
    """Problems of one shape, stacked or shared arrays of numbers."""

    size: int
    M: Array
    a: Array | None
    b: Array | None
    normalize: bool

    def chunks(self, first: int) -> Iterator[Chunk]:
        """Yield all problems from number ``first`` on."""
        n, m = self.M.shape[-2:]
        step = chunk_size(n, m, self.size)
        for start in range(first, self.size, step):
            yield self._slice(start, min(start + step, self.size))

    def only(self, k: int) -> Chunk:
        """Return problem k alone."""
        return self._slice(k, k + 1)

    def digest(self) -> str:
        """Return a hash of all problems."""
        return digest_of((self.size, self.normalize, self.M, self.a, self.b))

    def _slice(self, start: int, stop: int) -> StackChunk:
        M = self.M[start:stop] if self.M.ndim == 3 else self.M
        a, b = (w[start:stop] if w is not None and w.ndim == 2 else w for w in (self.a, self.b))
        tolerance = max(tolerance_of(self.a), tolerance_of(self.b))
        return StackChunk(start, stop - start, M, a, b, self.normalize, tolerance)
