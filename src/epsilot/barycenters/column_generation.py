"""The barycentre's linear program on few arcs, solved by HiGHS; arcs that would pay are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import sparse

from .. import processes
from .._types import Index, Matrix, Vector
from ..arguments import check_count
from ..engine.goal import Goal
from ..errors import InvalidProblem
from ..problems.plan import Arcs, Core
from ..problems.problem import Problem
from ..problems.work import Work
from ..solvers.base import ResizableState
from ..solvers.method_info import MethodInfo
from .bregman import Bregman, BregmanState
from .family import Family, FamilyCore
from .stages import FamilySchedule, FamilySignal, FamilySolver, FamilyTarget, Stage


@dataclass(frozen=True)
class ColumnGenerationTuning:
    """Sizes and tolerances of column generation."""

    # Entries of the costs, without empty rows, up to which all are priced at once.
    max_priced_entries: int = 1 << 23
    descent_rtol: float = 0.02  # relative gap of the descent whose potentials choose the first arcs
    # Reduced costs, as a share of the largest cost, that are zero up to rounding.
    zero_reduced_cost: float = 1e-13
    # Feasibility tolerance of HiGHS, for masses about 1 and costs up to 1.
    highs_tolerance: float = 1e-10
    # Arcs above which HiGHS, which may take more than half a second, runs in a process of its
    # own.
    max_arcs_in_process: int = 25_000


TUNING = ColumnGenerationTuning()

#: Chooses the potentials of the first arcs.
DESCENT = Bregman()


@dataclass(slots=True)
class ProgramState(ResizableState):
    """The arcs of the linear program, and its solution; arcs of all histograms in one array."""

    columns: Matrix
    kept: Index  # arcs i m + j of the program
    n_kept: Index  # of every histogram
    paying: Index  # arcs of negative reduced cost, which the next program adds
    n_paying: Index
    flow: Vector  # on the arcs that are kept
    is_solved: bool

    def fits(self, target: FamilyTarget) -> bool:
        """Tell whether arrays from a file belong together, and to the family."""
        problems = [support.problem for support in target.family.supports]
        for arcs, counts in ((self.kept, self.n_kept), (self.paying, self.n_paying)):
            if counts.size != len(problems) or counts.min() < 0 or counts.sum() != arcs.size:
                return False
            for x, problem in zip(_parts(arcs, counts), problems, strict=True):
                if x.size and not (x.min() >= 0 and x.max() < problem.p.size * problem.shape[1]):
                    return False
        return self.flow.size == (self.kept.size if self.is_solved else 0)


def _parts(arcs: Index, counts: Index) -> list[Index]:
    """Return the arcs of every histogram."""
    return np.split(arcs, np.cumsum(counts)[:-1])


def _joined(parts: list[Index]) -> tuple[Index, Index]:
    """Return the arcs of all histograms in one array, and their numbers."""
    arcs = np.concatenate(parts).astype(np.int64)
    return arcs, np.array([x.size for x in parts], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ColumnGeneration(FamilySolver):
    """Solve the linear program on the arcs of small reduced cost, and price the others.

    Bregman projections find potentials that choose the first arcs.

    Parameters
    ----------
    arcs : int
        Arcs for each row and column that the first program has, and that a round may add.
    """

    arcs: int = 6

    about: ClassVar[MethodInfo] = MethodInfo(
        family="barycentres",
        paper="Anderes, Borgwardt, Miller",
        year=2016,
        solves_entropic=False,
        needs_dense=True,
    )

    def __post_init__(self) -> None:
        check_count("arcs", self.arcs, 1)

    def check(self, family: Family) -> None:
        """Refuse costs that are too many to price at once."""
        if family.pass_entries > TUNING.max_priced_entries:
            raise InvalidProblem(
                f"the histograms have {family.pass_entries:,} costs to the barycentre; 'exact' "
                f"serves up to {TUNING.max_priced_entries:,} (use method='auto' with rtol)."
            )

    def schedule(self, family: Family, goal: Goal) -> FamilySchedule:
        """Return a crude descent of η, then the linear programs."""
        rtol = max(goal.rtol or TUNING.descent_rtol, TUNING.descent_rtol)
        crude = replace(goal, eps=None, rtol=rtol, offset=family.shift)
        return FamilySchedule(family, goal, crude, last=Stage.PROGRAMS, starts_coarse=False)

    def init(
        self, target: FamilyTarget, rng: Generator, potentials: tuple[Vector, ...] | None = None
    ) -> tuple[ProgramState | BregmanState, Work]:
        """Return column potentials, in the programs' stage with arcs of small reduced cost."""
        if target.stage is not Stage.PROGRAMS:
            return DESCENT.init(target, rng, potentials)
        family, G = target.family, target.columns(potentials)
        problems = [support.problem for support in family.supports]
        kept = [self._first(x, g, family) for x, g in zip(problems, G, strict=True)]
        empty = np.zeros(0, dtype=np.int64)
        none = empty, np.zeros(len(problems), dtype=np.int64)
        return ProgramState(G, *_joined(kept), *none, np.zeros(0), is_solved=False), Work()

    def step(
        self, target: FamilyTarget, state: ProgramState | BregmanState, rng: Generator
    ) -> Work:
        """Solve the program with the arcs that pay, and price all others."""
        if isinstance(state, BregmanState):
            return DESCENT.step(target, state, rng)
        family = target.family
        problems = [support.problem for support in family.supports]
        parts = zip(
            _parts(state.kept, state.n_kept), _parts(state.paying, state.n_paying), strict=True
        )
        kept = [np.union1d(x, y) for x, y in parts]
        solved = _solve(family, problems, kept)
        paying = [
            self._paying(problem, arcs, f, g, family.cost_max)
            for problem, arcs, f, g in zip(problems, kept, solved.rows, solved.columns, strict=True)
        ]
        state.kept, state.n_kept = _joined(kept)
        state.paying, state.n_paying = _joined(paying)
        state.columns, state.flow, state.is_solved = solved.columns, solved.flow, True
        return Work.of(pivot=family.pass_entries)

    def signal(self, target: FamilyTarget, state: ProgramState | BregmanState) -> FamilySignal:
        """Return whether a program was solved, and whether no arc pays."""
        if isinstance(state, BregmanState):
            return DESCENT.signal(target, state)
        is_finished = state.is_solved and state.paying.size == 0
        return FamilySignal(state.columns, np.inf, is_finished, state.is_solved)

    def candidates(
        self, target: FamilyTarget, state: ProgramState | BregmanState
    ) -> list[tuple[FamilyCore, Vector]]:
        """Return the flows as plans, and the potentials of the program."""
        if isinstance(state, BregmanState):
            return DESCENT.candidates(target, state)
        if not state.is_solved:
            return []
        return [(_core(target.family, state), state.columns.ravel())]

    def _first(self, problem: Problem, g: Vector, family: Family) -> Index:
        """Return arcs of small reduced cost, with one at least for every row and every column.

        All rows reach one place, so that the program has a solution.
        """
        n, m = problem.shape
        C = problem.geometry.matrix()
        R = C - g
        R -= R.min(axis=1)[:, None]
        few = _least(R.ravel(), self.arcs * (n + m))
        rows = np.arange(n)
        cheapest = np.arange(m) + m * R.argmin(axis=0)
        central = rows * m + _central(family)
        return np.unique(np.concatenate((few, cheapest, rows * m + R.argmin(axis=1), central)))

    def _paying(
        self, problem: Problem, kept: Index, f: Vector, g: Vector, cost_max: float
    ) -> Index:
        """Return arcs of negative reduced cost, the least ones."""
        n, m = problem.shape
        R = (problem.geometry.matrix() - f[:, None] - g).ravel()
        R[kept] = np.inf
        negative = np.flatnonzero(-TUNING.zero_reduced_cost * cost_max > R)
        return np.asarray(negative[_least(R[negative], self.arcs * (n + m))])


class ProgramSolution(NamedTuple):
    """Flows on all arcs, one after the other, and potentials, in internal units."""

    flow: Vector
    rows: list[Vector]
    columns: Matrix


def _least(values: Vector, count: int) -> Index:
    """Return the places of the least values: the given number, and all that tie with the last."""
    if values.size <= count:
        return np.arange(values.size)
    return np.flatnonzero(values <= np.sort(values)[count])


def _central(family: Family) -> int:
    """Return the place to which moving everything costs least."""
    total = np.zeros(family.shape[1])
    for w, support in zip(family.weights.tolist(), family.supports, strict=True):
        problem = support.problem
        for start, stop, C in problem.geometry.blocks():
            total += w * (problem.p[start:stop, None] * C).sum(axis=0)
    return int(total.argmin())


class LinearProgram(NamedTuple):
    """min <c, x>, A x = b, x >= 0: flows on all arcs, then the barycentre's masses."""

    c: Vector
    A: sparse.csr_array
    b: Vector


def _program(family: Family, problems: list[Problem], kept: list[Index]) -> LinearProgram:
    """Return the program on the kept arcs, with costs up to 1 and masses about 1.

    Rows of A are those of a histogram, then the places of the barycentre, for one histogram after
    the other; the barycentre's columns have -1 at its places.
    """
    m = family.shape[1]
    n_arcs = sum(arcs.size for arcs in kept)
    first = arc = 0
    rows, cols, signs, costs, masses = [], [], [], [], []
    for w, problem, arcs in zip(family.weights.tolist(), problems, kept, strict=True):
        n = problem.shape[0]
        i, j = np.divmod(arcs, m)
        here = np.arange(arc, arc + arcs.size)
        rows += [first + i, first + n + j, first + n + np.arange(m)]
        cols += [here, here, n_arcs + np.arange(m)]
        signs += [np.ones(2 * arcs.size), -np.ones(m)]
        costs.append(w * problem.geometry.entries(i, j) / family.cost_max)
        masses += [m * problem.p, np.zeros(m)]
        first, arc = first + n + m, arc + arcs.size
    places = np.concatenate(rows), np.concatenate(cols)
    A = sparse.csr_array((np.concatenate(signs), places), shape=(first, n_arcs + m))
    return LinearProgram(np.concatenate([*costs, np.zeros(m)]), A, np.concatenate(masses))


def _solve(family: Family, problems: list[Problem], kept: list[Index]) -> ProgramSolution:
    """Solve the program on the kept arcs."""
    c, A, b = _program(family, problems, kept)
    tolerances = {f"{x}_feasibility_tolerance": TUNING.highs_tolerance for x in ("primal", "dual")}
    # The presolve of HiGHS can call a program infeasible whose masses differ by eleven digits.
    for options in (tolerances, {"presolve": False, **tolerances}):
        found = _highs(c, A_eq=A, b_eq=b, method="highs-ds", options=options)
        if found.x is not None:
            break
    else:
        raise InvalidProblem(
            f"HiGHS could not solve the linear program ({found.message.strip()}); use "
            "method='auto' with rtol."
        )
    m = family.shape[1]
    flow = np.maximum(found.x[:-m], 0) / m
    return _potentials(family, problems, flow, found.eqlin.marginals)


def _highs(c: Vector, **keywords: Any) -> Any:
    """Solve a linear program, a large one in a process that can be ended."""
    if c.size > TUNING.max_arcs_in_process:
        return processes.call("scipy.optimize", "linprog", c, **keywords)
    from scipy.optimize import linprog

    return linprog(c, **keywords)


def _potentials(
    family: Family, problems: list[Problem], flow: Vector, marginals: Vector
) -> ProgramSolution:
    """Return flows, and potentials from the duals of the program's rows: they are w_k times those.

    A histogram without weight has any potentials.
    """
    m = family.shape[1]
    rows, columns, first = [], [], 0
    for w, problem in zip(family.weights.tolist(), problems, strict=True):
        n = problem.shape[0]
        share = family.cost_max / w if w > 0 else 0.0
        rows.append(share * marginals[first : first + n])
        columns.append(share * marginals[first + n : first + n + m])
        first += n + m
    return ProgramSolution(flow, rows, np.stack(columns))


def _core(family: Family, state: ProgramState) -> FamilyCore:
    """Return the flows as plans of the whole problems."""
    cores: list[Core] = []
    arc = 0
    kept = _parts(state.kept, state.n_kept)
    for support, arcs in zip(family.supports, kept, strict=True):
        problem = support.problem
        i, j = np.divmod(arcs, problem.shape[1])
        plan = Arcs(problem.shape, i, j, state.flow[arc : arc + arcs.size]).above(0.0)
        cores.append(support.lifted(plan, np.zeros(problem.shape[0]))[0])
        arc += arcs.size
    return FamilyCore(tuple(cores))
