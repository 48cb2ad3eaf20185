"""Results do not depend on whether a thread replaces subnormal numbers by zero."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import epsilot
from epsilot import arithmetic, parallel


def keeps_subnormals(_=None):
    kept = bool((np.array([np.finfo(float).tiny]) * 0.5 > 0)[0])
    assert arithmetic.are_kept() == kept
    return kept


@pytest.fixture
def flushing():
    """Flush subnormal numbers in this thread."""
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush subnormal numbers")
    yield
    torch.set_flush_denormal(False)


def test_a_block_keeps_subnormals_and_restores_the_mode(flushing):
    assert not keeps_subnormals()
    with arithmetic.keeping_subnormals():
        assert keeps_subnormals()
    assert not keeps_subnormals()


def test_pools_keep_subnormals_wherever_they_are_made(flushing):
    with ThreadPoolExecutor(1) as plain:
        assert not any(plain.map(keeps_subnormals, [0]))
    parallel._pool.cache_clear()
    with parallel.limit(2):
        assert all(parallel.in_order(keeps_subnormals, range(20)))
    parallel._pool.cache_clear()


CALLS = {
    "solve": lambda M, a: epsilot.solve(M, a, a),
    "batch": lambda M, a: epsilot.solve_batch(M[None], a[None], a[None], n_threads=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_see_subnormal_costs(flushing, name):
    M, a = np.array([[1e-310, 3e-310], [2e-310, 1e-310]]), np.array([0.5, 0.5])
    with pytest.raises(epsilot.InvalidProblem, match="costs reach"):
        CALLS[name](M, a)
    assert not keeps_subnormals()


SCRIPT = """
import numpy as np, jax, epsilot, epsilot.jax
x = np.random.default_rng(0).random((64, 5, 2)).astype(np.float32)
jax.jit(epsilot.jax.transport_cost)(x, x + 1).block_until_ready()
M = np.full((40, 3, 3), 1e-310)
print(len(epsilot.solve_batch(M, n_threads=2, on_error="collect").errors))
"""


def test_threads_that_jax_calls_back_leave_no_trace():
    pytest.importorskip("jax")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["40"], done.stderr
