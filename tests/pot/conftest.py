"""Tests of POT's names run with float64 in JAX, as POT's own tests do."""

import sys

import pytest


@pytest.fixture(autouse=True)
def float64_in_jax():
    """Use float64 in JAX inside a test, where it is imported at all."""
    jax = sys.modules.get("jax")
    if jax is None:
        yield
        return
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
