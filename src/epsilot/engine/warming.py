"""Compile a method's kernels before its clock starts."""

from __future__ import annotations

import numpy as np

from .. import deadline
from ..geometry import Geometry
from ..kernels.compile_watch import solver_clock
from ..problems.balanced import Transport
from ..problems.problem import Problem, Target
from ..solvers.base import AnySolver

#: Compiled methods: solver class, geometry class and options.
_warm: set[tuple[type[AnySolver], type[Geometry], str]] = set()


def warm_up(solver: AnySolver, target: Target) -> float:
    """Compile a solver's kernels on a tiny instance; return the seconds on the solver's clock.

    That clock stands still while kernels compile, and no limit ends the compiler.
    """
    key = (type(solver), type(target.geometry), repr(solver))
    if key in _warm or not solver.pace.warm_up:
        return 0.0
    _warm.add(key)
    began = solver_clock()
    with deadline.until(None):
        _compile(solver, target)
    return solver_clock() - began


def _compile(solver: AnySolver, target: Target) -> None:
    """Run a solver on a tiny instance, so that every kernel compiles."""
    geometry = target.geometry.miniature()
    tiny = target.miniature(geometry)
    rng = np.random.default_rng(0)
    state, _ = solver.init(tiny, rng)
    for _ in range(solver.pace.warm_up):
        solver.step(tiny, state, rng)
    if all((x < np.inf).all() for x in solver.potentials(tiny, state)):
        for core, row in solver.candidates(tiny, state):
            Transport(Problem(geometry, tiny.p, tiny.q)).evaluate(core, row)
