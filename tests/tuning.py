"""Change tuning parameters of a solver for the length of a test."""

from dataclasses import replace
from unittest import mock


def tune(monkeypatch, module, **parameters):
    """Replace tuning parameters of a module, which must exist."""
    monkeypatch.setattr(module, "TUNING", replace(module.TUNING, **parameters))


def tuned(module, **parameters):
    """Return a context in which tuning parameters of a module are replaced."""
    return mock.patch.object(module, "TUNING", replace(module.TUNING, **parameters))
