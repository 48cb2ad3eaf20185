"""Measure one thing each: every module has a ``main`` for ``python -m epsilot_lab``."""
