"""Solve a chunk of problems with compiled code: a pure function of its data.

A thread or another machine can run it. Problems that the compiled solver refuses go through
``execute``, as ``solve`` does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ..._types import Array, Index, Potentials, Vector
from ...errors import InvalidProblem
from ...files.saved import Arrays, Saved
from ...kernels.small import (
    Answers,
    Goal,
    Problems,
    blank,
    extend_potentials,
    potentials_to_user,
    solve_all,
)
from ...problems.linear import Transport
from ...problems.plan import Arcs, Plan
from ...problems.problem import make_problem
from ...problems.record import Record
from ...problems.work import Work
from ...version import __version__
from ..execute import execute
from ..goal import RTOL, make_goal
from ..request import Request
from ..result import Result, Status
from .problems import Chunk, places

#: Places that a saved index may point at: what an array can have.
LONGEST = 2**62


def _replaced(starts: Index, values: Array, k: int, item: Array) -> Array:
    """Return values in which piece k is another one."""
    return np.concatenate((values[: starts[k]], item, values[starts[k + 1] :]))


def _moved(starts: Index, k: int, size: int) -> Index:
    """Return where pieces begin when piece k has another size."""
    sizes = np.diff(starts)
    sizes[k] = size
    return places(sizes)


def _joined(parts: Iterable[Array], dtype: DTypeLike) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts])


@dataclass(frozen=True)
class Plans(Sequence[sparse.csr_array]):
    """The plans of a batch as sparse matrices: ``plans[k]`` is a SciPy CSR array.

    Plan k has the entries ``flow`` at (``i``, ``j``) from ``starts[k]`` to ``starts[k + 1]``.
    """

    shapes: Index
    starts: Index
    i: Index
    j: Index
    flow: Vector

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, k: int) -> sparse.csr_array: ...
    @overload
    def __getitem__(self, k: slice) -> list[sparse.csr_array]: ...
    def __getitem__(self, k: int | slice) -> sparse.csr_array | list[sparse.csr_array]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = range(len(self))[k]
        own = slice(self.starts[k], self.starts[k + 1])
        entries = self.flow[own], (self.i[own], self.j[own])
        return sparse.csr_array(entries, shape=tuple(map(int, self.shapes[k])))

    def tosparse(self) -> sparse.csr_array:
        """Return all plans as the blocks of one block-diagonal CSR array."""
        at = [np.repeat(places(self.shapes[:, c])[:-1], np.diff(self.starts)) for c in (0, 1)]
        shape = tuple(map(int, self.shapes.sum(axis=0)))
        return sparse.csr_array((self.flow, (self.i + at[0], self.j + at[1])), shape=shape)

    def replaced(self, k: int, plan: sparse.sparray) -> Plans:
        """Return the plans with another one at k, a sparse matrix."""
        plan = sparse.coo_array(plan)
        shapes = self.shapes.copy()
        shapes[k] = plan.shape
        i, j, flow = (
            _replaced(self.starts, x, k, y)
            for x, y in zip((self.i, self.j, self.flow), (*plan.coords, plan.data), strict=True)
        )
        return Plans(shapes, _moved(self.starts, k, plan.nnz), i, j, flow)

    def first(self, n: int) -> Plans:
        """Return the first n plans."""
        own = slice(self.starts[n])
        return Plans(
            self.shapes[:n], self.starts[: n + 1], self.i[own], self.j[own], self.flow[own]
        )

    @classmethod
    def joined(cls, parts: Sequence[Plans]) -> Self:
        """Return the plans of some parts, one after the other."""
        return cls(
            np.concatenate([np.zeros((0, 2), np.int64), *(x.shapes for x in parts)]),
            places(_joined((np.diff(x.starts) for x in parts), np.int64)),
            _joined((x.i for x in parts), np.int64),
            _joined((x.j for x in parts), np.int64),
            _joined((x.flow for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return what a file holds of the plans."""
        return {
            "shapes": self.shapes,
            "starts": self.starts,
            "i": self.i,
            "j": self.j,
            "flow": self.flow,
        }

    @classmethod
    def from_arrays(cls, saved: Saved, size: int) -> Self:
        """Return the plans of so many problems from a file, which may be anybody's."""
        shapes = saved.indices("shapes", (size, 2), LONGEST)
        starts = _starts(saved, "starts", size)
        n = (int(starts[-1]),)
        i, j = (saved.indices(name, n, LONGEST) for name in ("i", "j"))
        ends = np.repeat(shapes, np.diff(starts), axis=0)
        if (i >= ends[:, 0]).any() or (j >= ends[:, 1]).any():
            raise InvalidProblem("a saved plan points beyond its matrix; write the file again.")
        return cls(shapes, starts, i, j, saved.masses("flow", n))


@dataclass(frozen=True)
class ManyPotentials(Sequence[Potentials]):
    """The potentials of a batch: ``potentials[k]`` is the pair (f, g) of problem k."""

    f_starts: Index
    f: Vector
    g_starts: Index
    g: Vector

    def __len__(self) -> int:
        return self.f_starts.size - 1

    @overload
    def __getitem__(self, k: int) -> Potentials: ...
    @overload
    def __getitem__(self, k: slice) -> list[Potentials]: ...
    def __getitem__(self, k: int | slice) -> Potentials | list[Potentials]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = range(len(self))[k]
        f = self.f[self.f_starts[k] : self.f_starts[k + 1]]
        return f, self.g[self.g_starts[k] : self.g_starts[k + 1]]

    def replaced(self, k: int, pair: Potentials) -> ManyPotentials:
        """Return the potentials with another pair at k."""
        f, g = pair
        return ManyPotentials(
            _moved(self.f_starts, k, f.size),
            _replaced(self.f_starts, self.f, k, f),
            _moved(self.g_starts, k, g.size),
            _replaced(self.g_starts, self.g, k, g),
        )

    def first(self, n: int) -> ManyPotentials:
        """Return the potentials of the first n problems."""
        f_starts, g_starts = self.f_starts[: n + 1], self.g_starts[: n + 1]
        return ManyPotentials(f_starts, self.f[: f_starts[-1]], g_starts, self.g[: g_starts[-1]])

    @classmethod
    def joined(cls, parts: Sequence[ManyPotentials]) -> Self:
        """Return the potentials of some parts, one after the other."""
        return cls(
            places(_joined((np.diff(x.f_starts) for x in parts), np.int64)),
            _joined((x.f for x in parts), np.float64),
            places(_joined((np.diff(x.g_starts) for x in parts), np.int64)),
            _joined((x.g for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return what a file holds of the potentials."""
        return {"f_starts": self.f_starts, "f": self.f, "g_starts": self.g_starts, "g": self.g}

    @classmethod
    def from_arrays(cls, saved: Saved, size: int) -> Self:
        """Return the potentials of so many problems from a file, which may be anybody's."""
        f_starts, g_starts = (_starts(saved, name, size) for name in ("f_starts", "g_starts"))
        f, g = (
            saved.array(name, (int(starts[-1]),), np.dtype(np.float64))
            for name, starts in (("f", f_starts), ("g", g_starts))
        )
        return cls(f_starts, f, g_starts, g)


def _starts(saved: Saved, name: str, size: int) -> Index:
    """Return where pieces begin, or say that they cannot."""
    starts = saved.indices(name, (size + 1,), LONGEST)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InvalidProblem(f"the saved array {name} does not ascend from 0; write it again.")
    return starts


@dataclass(frozen=True)
class BatchGoal:
    """What is wanted of every problem: a gap of ``eps`` (0: ``rtol``), and what to keep."""

    eps: float
    rtol: float
    plans: bool = False
    potentials: bool = False

    @classmethod
    def of(cls, request: Request, *, plans: bool = False, potentials: bool = False) -> BatchGoal:
        """Return what a request says of every problem."""
        rtol = RTOL if request.rtol is None else request.rtol
        return cls(float(request.eps or 0.0), float(rtol), plans, potentials)


class SolvedChunk(NamedTuple):
    """What is proved of the problems of a chunk; others have NaN and are not ``is_done``."""

    chunk: Chunk
    is_done: NDArray[np.bool_]
    value: Vector
    lower_bound: Vector
    marginal_error: Vector
    plans: Plans | None
    potentials: ManyPotentials | None


def answer(chunk: Chunk, goal: BatchGoal) -> tuple[Problems, Answers]:
    """Return the problems of a chunk as they were packed, and what is proved of them."""
    problems = chunk.packed()
    answers = blank(problems)
    solve_all(problems, Goal(goal.eps, goal.rtol, chunk.tolerance), answers)
    return problems, answers


def solve_chunk(chunk: Chunk, goal: BatchGoal) -> SolvedChunk:
    """Solve the problems of a chunk that the compiled solver takes."""
    problems, answers = answer(chunk, goal)
    value, lower, error = answers.numbers[:, :3].T.copy()
    return SolvedChunk(
        chunk,
        answers.n_arcs > 0,
        value,
        lower,
        error,
        plans_of(problems, answers) if goal.plans else None,
        potentials_of(problems, answers) if goal.potentials else None,
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
    extend_potentials(problems, answers)
    f, g = np.empty_like(answers.f), np.empty_like(answers.g)
    potentials_to_user(answers, f, g)
    return ManyPotentials(answers.at[1], f, answers.at[2], g)


#: What such results say of their method.
CHOICE = "small_simplex: one of many small problems"


def ordinary(chunk: Chunk, k: int, request: Request) -> Result:
    """Return what ``solve`` makes of the k-th problem of a chunk."""
    return execute(make_problem(*chunk.given(k), normalize=chunk.normalize), request)


def result_of(chunk: Chunk, request: Request) -> Result:
    """Return the result of the only problem of a chunk, its bracket proved once more."""
    began = time.perf_counter()
    packed, answers = answer(chunk, BatchGoal.of(request))
    if answers.n_arcs[0] == 0:
        return ordinary(chunk, 0, request)
    problem = make_problem(*chunk.given(0), normalize=chunk.normalize)
    potentials = potentials_of(packed, answers)[0]
    plan, objective = _plan(answers, problem.shape), Transport(problem)
    proof = objective.prove(plan, (answers.f, answers.g))
    value, lower_bound, error, mass = (float(x) for x in answers.numbers[0, :4])
    seconds = time.perf_counter() - began
    work = Work.of(pivot=problem.shape[0] * problem.shape[1])
    record = Record(
        n_iter=1,
        operations=work.operations,
        seconds=seconds,
        upper=value,
        lower=lower_bound,
        gap=value - lower_bound,
        marginal_error=error,
        reg=0.0,
    )
    return Result(
        plan_operator=plan.scaled(mass),
        potentials=potentials,
        value=value,
        value_linear=value,
        lower_bound=lower_bound,
        marginal_error=error,
        converged=True,
        status=Status.CERTIFIED,
        method="small_simplex",
        reg=0.0,
        seed=request.seed,
        options={},
        version=__version__,
        n_iter=1,
        work=work,
        seconds=seconds,
        history=[record],
        target=problem.mass * problem.unit * make_goal(objective, request).allowed(proof.lower),
        is_entropic=False,
        problem=problem,
        choice=CHOICE,
        slopes=objective.slopes,
        asked=request.written(),
    )


def _plan(answers: Answers, shape: tuple[int, int]) -> Plan:
    """Return the plan of the only problem, of mass 1."""
    n = answers.n_arcs[0]
    i, j = answers.arcs[:, :n].copy()
    return Plan(Arcs(shape, i, j, answers.flow[:n].copy()))
