"""Shared set-up: one kernel cache per worker, hypothesis profiles, fixtures."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Two processes that compile different signatures of one kernel at the same moment can leave an
# index entry of numba's cache pointing at the other's code, so each xdist worker has its own
# directory. numba reads the variable when it is imported, which is after this file.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER:
    shared = Path(__file__).parents[1] / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(os.environ.get("NUMBA_CACHE_DIR", shared)) / WORKER)

settings.register_profile("dev", deadline=None, max_examples=40)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
