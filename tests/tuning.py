"""Change tuning parameters for the length of a test."""

import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest


def tune(monkeypatch, module, **parameters):
    """Replace tuning parameters of a module, which must exist, wherever they are imported."""
    old, new = module.TUNING, replace(module.TUNING, **parameters)
    for name, other in list(sys.modules.items()):
        if name.startswith("epsilot"):
            for key in [key for key, value in vars(other).items() if value is old]:
                monkeypatch.setattr(other, key, new)


@contextmanager
def tuned(module, **parameters):
    """Return a context in which tuning parameters of a module are replaced."""
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, module, **parameters)
        yield
