"""Generators that are made quickly are those of NumPy."""

import numpy as np
import pytest

from epsilot.engine.seeds import generator


@pytest.mark.parametrize("seed", [0, 1, 2**40, 2**63 - 1, np.int64(7)])
def test_a_seed_gives_numpys_stream_each_time(seed):
    for _ in range(2):
        ours, theirs = generator(seed), np.random.default_rng(seed)
        assert ours.bit_generator.state == theirs.bit_generator.state
        np.testing.assert_array_equal(ours.random(5), theirs.random(5))
