"""Both frameworks offer the same functions, and need not be installed."""

import inspect
import subprocess
import sys

import pytest

FUNCTIONS = ["divergence", "match", "transport_cost", "transport_cost_matrix"]


def test_both_frameworks_offer_the_same_functions():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    import epsilot.jax
    import epsilot.torch

    assert epsilot.jax.__all__ == ["Info", *FUNCTIONS]
    assert epsilot.torch.__all__ == ["Info", "TransportLoss", *FUNCTIONS]  # a torch.nn.Module
    for name in FUNCTIONS:
        ours, theirs = (getattr(module, name) for module in (epsilot.torch, epsilot.jax))
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs)


@pytest.mark.parametrize(("name", "package"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_a_missing_framework_is_named_in_one_sentence(name, package):
    script = f"import sys; sys.modules[{name!r}] = None; import epsilot; epsilot.{name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"epsilot.{name} requires {package}, which cannot be imported" in done.stderr
    assert f'pip install "epsilot[{name}]"' in done.stderr
