"""A chunk of problems solved: a pure function of its data, for a thread or for another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._types import Index, Vector
from ...kernels.small import Answers, Goal, Problems, blank, solve_all
from ...kernels.small_potentials import extend, to_user
from ..goal import RTOL
from ..request import Request
from .blocks import ManyPotentials, Plans
from .packing import places
from .source import Chunk


@dataclass(frozen=True)
class Wish:
    """What is wanted of every problem: a gap of ``eps`` (0: ``rtol``), and what to keep."""

    eps: float
    rtol: float
    plans: bool = False
    potentials: bool = False

    @classmethod
    def of(cls, request: Request, *, plans: bool = False, potentials: bool = False) -> Wish:
        """Return what a request says of every problem."""
        rtol = RTOL if request.rtol is None else request.rtol
        return cls(float(request.eps or 0.0), float(rtol), plans, potentials)


class Solved(NamedTuple):
    """What is proved of the problems of a chunk; others have NaN and are not ``is_done``."""

    chunk: Chunk
    is_done: NDArray[np.bool_]
    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    plans: Plans | None
    potentials: ManyPotentials | None


def answer(chunk: Chunk, wish: Wish) -> tuple[Problems, Answers]:
    """Return the problems of a chunk as they were packed, and what is proved of them."""
    problems = chunk.packed()
    answers = blank(problems)
    solve_all(problems, Goal(wish.eps, wish.rtol, chunk.tolerance), answers)
    return problems, answers


def solve_chunk(chunk: Chunk, wish: Wish) -> Solved:
    """Solve the problems of a chunk that the compiled solver takes."""
    problems, answers = answer(chunk, wish)
    value, lower, error = answers.numbers[:, :3].T.copy()
    return Solved(
        chunk,
        answers.n_arcs > 0,
        value,
        lower,
        error,
        plans_of(problems, answers) if wish.plans else None,
        potentials_of(problems, answers) if wish.potentials else None,
    )


def plans_of(problems: Problems, answers: Answers) -> Plans:
    """Return the plans of solved problems in the caller's units, those of others being empty."""
    n_arcs, at = answers.n_arcs, answers.at
    kept = np.arange(at[0, -1]) - np.repeat(at[0, :-1], np.diff(at[0])) < np.repeat(
        n_arcs, np.diff(at[0])
    )
    mass = np.repeat(answers.numbers[:, 3], n_arcs)
    (i, j), flow = answers.arcs[:, kept], answers.flow[kept]
    return Plans(shapes_of(problems), places(n_arcs), i, j, flow * mass)


def shapes_of(problems: Problems) -> Index:
    """Return the shapes of packed problems."""
    of = problems.of
    return np.stack((problems.sources.sizes[of[:, 1]], problems.targets.sizes[of[:, 2]]), axis=1)


def potentials_of(problems: Problems, answers: Answers) -> ManyPotentials:
    """Return feasible potentials of solved problems in the caller's units, NaN for others."""
    extend(problems, answers)
    f, g = np.empty_like(answers.f), np.empty_like(answers.g)
    to_user(answers, f, g)
    return ManyPotentials(answers.at[1], f, answers.at[2], g)
