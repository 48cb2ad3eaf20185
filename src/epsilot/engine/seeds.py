"""The generator of a seed: hashing a seed takes longer than a small problem, so it is done once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

#: Words of 64 bits that a PCG64 starts from.
N_WORDS = 4


@lru_cache(maxsize=64)
def _words(seed: int) -> NDArray[np.uint32 | np.uint64]:
    """Return what NumPy hashes a seed to."""
    return SeedSequence(seed).generate_state(N_WORDS, np.uint64)


class _Hashed(ISeedSequence):
    """A seed that remembers what it is hashed to."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def generate_state(
        self, n_words: int, dtype: object = np.uint32
    ) -> NDArray[np.uint32 | np.uint64]:
        """Return the words that a PCG64 asks for."""
        assert (n_words, dtype) == (N_WORDS, np.uint64)
        return _words(self.seed)


def generator(seed: int) -> Generator:
    """Return the generator that ``numpy.random.default_rng(seed)`` returns."""
    # The stubs leave out ISeedSequence, which is what a bit generator asks for.
    return Generator(PCG64(_Hashed(int(seed))))  # type: ignore[arg-type]
