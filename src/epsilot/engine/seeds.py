"""Make random generators from seeds. Hashes are cached: each costs as much as a small solve."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

#: Words of 64 bits that seed a PCG64.
N_WORDS = 4


@lru_cache(maxsize=64)
def _words(seed: int) -> NDArray[np.uint32 | np.uint64]:
    """Return the hash of a seed that NumPy computes."""
    return SeedSequence(seed).generate_state(N_WORDS, np.uint64)


class _CachedSeed(ISeedSequence):
    """A seed whose hash is cached."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def generate_state(
        self, n_words: int, dtype: object = np.uint32
    ) -> NDArray[np.uint32 | np.uint64]:
        """Return the words that seed a PCG64."""
        assert (n_words, dtype) == (N_WORDS, np.uint64)
        return _words(self.seed)


def generator(seed: int) -> Generator:
    """Return the generator that ``numpy.random.default_rng(seed)`` returns."""
    # NumPy accepts any ISeedSequence; its type stubs name a subclass.
    return Generator(PCG64(_CachedSeed(int(seed))))  # type: ignore[arg-type]
