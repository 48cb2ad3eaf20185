"""The barycentre's linear program on few arcs, solved by HiGHS; arcs that would pay are added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .. import processes
from .._types import Index, Matrix, Vector
from ..arguments import check_count
from ..engine.goal import Goal
from ..errors import InvalidProblem
from ..problems.plan import Arcs, Core
from ..problems.problem import Problem
from ..problems.work import Work
from .bregman import Bregman
from .continuation import FIRST
from .family import Family
from .method import Proposal, Start, Step, Steps

#: Entries of the costs, without empty rows, up to which all are priced at once.
LARGEST = 1 << 23
#: Relative gap to which the potentials that choose the first arcs are computed.
CRUDE = 0.02
#: Reduced costs, as a share of the largest cost, that are zero but for rounding.
ZERO = 1e-13
#: Feasibility that HiGHS is asked for, of masses about 1 and costs up to 1.
TOLERANCE = 1e-10
#: Arcs from which HiGHS, which may take more than half a second, runs in a process of its own.
LONG_ARCS = 25_000


@dataclass(frozen=True, kw_only=True)
class ColumnGeneration:
    """Solve the linear program on the arcs of small reduced cost, and price the others.

    Parameters
    ----------
    arcs : int
        Arcs for each row and column that the first program has, and that a round may add.
    """

    arcs: int = 6

    solves_entropic = False

    def __post_init__(self) -> None:
        check_count("arcs", self.arcs, 1)

    def steps(self, family: Family, goal: Goal, start: Start | None = None) -> Steps:
        """Yield steps: those of crude potentials, then one for each linear program."""
        if family.pass_entries > LARGEST:
            raise InvalidProblem(
                f"the histograms have {family.pass_entries:,} costs to the barycentre; 'exact' "
                f"serves up to {LARGEST:,} (use method='auto' with rtol)."
            )
        begin = start or Start(np.zeros(family.shape), FIRST * family.cost_max)
        crude = replace(goal, eps=None, rtol=max(goal.rtol or CRUDE, CRUDE))
        begin = yield from Bregman().descend(family, crude, begin)
        problems = [support.problem for support in family.supports]
        kept = [self._first(x, g, family) for x, g in zip(problems, begin.columns, strict=True)]
        while True:
            solved = _solve(family, problems, kept)
            fresh = [
                self._paying(problem, arcs, f, g, family.cost_max)
                for problem, arcs, f, g in zip(
                    problems, kept, solved.rows, solved.columns, strict=True
                )
            ]
            cores = _cores(family, problems, kept, solved)
            proposal = Proposal(solved.columns, lambda cores=cores: cores)  # type: ignore[misc]
            is_last = not any(x.size for x in fresh)
            work = Work.of(pivot=family.pass_entries)
            yield Step(work, 0.0, proposal, is_due=True, is_last=is_last)
            kept = [np.union1d(x, y) for x, y in zip(kept, fresh, strict=True)]

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
        """Return the least of the arcs whose reduced cost is negative."""
        n, m = problem.shape
        R = (problem.geometry.matrix() - f[:, None] - g).ravel()
        R[kept] = np.inf
        negative = np.flatnonzero(-ZERO * cost_max > R)
        return np.asarray(negative[_least(R[negative], self.arcs * (n + m))])


class Solved(NamedTuple):
    """Flows on all arcs, one after the other, and potentials, in internal units."""

    flow: Vector
    rows: list[Vector]
    columns: Matrix


def _least(values: Vector, count: int) -> Index:
    """Return the places of the least values: so many, and those that tie with the last."""
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


class Program(NamedTuple):
    """min <c, x>, A x = b, x >= 0: flows on all arcs, then the barycentre's masses."""

    c: Vector
    A: sparse.csr_array
    b: Vector


def _program(family: Family, problems: list[Problem], kept: list[Index]) -> Program:
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
    return Program(np.concatenate([*costs, np.zeros(m)]), A, np.concatenate(masses))


def _solve(family: Family, problems: list[Problem], kept: list[Index]) -> Solved:
    """Solve the program on the kept arcs."""
    c, A, b = _program(family, problems, kept)
    tolerances = {f"{x}_feasibility_tolerance": TOLERANCE for x in ("primal", "dual")}
    keywords = {"A_eq": A, "b_eq": b, "method": "highs-ds", "options": tolerances}
    if c.size > LONG_ARCS:
        found = processes.call("scipy.optimize", "linprog", c, **keywords)
    else:
        from scipy.optimize import linprog

        found = linprog(c, **keywords)
    if found.x is None:
        raise InvalidProblem(
            f"HiGHS could not solve the linear program ({found.message.strip()}); use "
            "method='auto' with rtol."
        )
    m = family.shape[1]
    flow = np.maximum(found.x[:-m], 0) / m
    return _potentials(family, problems, flow, found.eqlin.marginals)


def _potentials(family: Family, problems: list[Problem], flow: Vector, marginals: Vector) -> Solved:
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
    return Solved(flow, rows, np.stack(columns))


def _cores(
    family: Family, problems: list[Problem], kept: list[Index], solved: Solved
) -> list[Core]:
    """Return the flows as plans of the whole problems."""
    cores: list[Core] = []
    arc = 0
    for support, problem, arcs in zip(family.supports, problems, kept, strict=True):
        i, j = np.divmod(arcs, problem.shape[1])
        plan = Arcs(problem.shape, i, j, solved.flow[arc : arc + arcs.size]).above(0.0)
        cores.append(support.lifted(plan, np.zeros(problem.shape[0]))[0])
        arc += arcs.size
    return cores
