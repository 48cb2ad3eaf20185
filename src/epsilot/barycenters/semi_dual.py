r"""Methods on the semi-dual of the entropic barycentre: L-BFGS, and stochastic steps (PDASMD).

The semi-dual is smooth, over column potentials with Σ w_k g_k = 0:

.. math:: φ(g) = \sum_k w_k \sum_i p_{ki} η \log \sum_j e^{(g_{kj} - C_{kij})/η}

Its slope in direction s is Σ w_k <c_k, s_k>, where c_k are the column sums of the plan whose rows
are right. In the norm Σ w_k ‖g_k‖², in which y_k = √w_k g_k are the variables of the orthogonal
projection, the gradient is c_k - Σ_l w_l c_l, and φ is 1/η-smooth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Index, Matrix, Vector
from ..arguments import check_count, check_positive
from ..errors import InvalidProblem
from ..finite_sum.algorithm import draw
from ..geometry.sweeps import ByRow, ColumnSums
from ..kernels import pdasmd as kernels
from ..kernels.vectors import dot, exp, log
from ..problems.duals import softmin
from ..problems.problem import Problem
from ..problems.work import Work
from ..solvers import stochastic_steps as loops
from ..solvers.base import SolverState
from ..solvers.method_info import MethodInfo
from ..solvers.pdasmd import TUNING
from .family import Family
from .stages import FamilySolver, FamilyTarget


class Evaluated(NamedTuple):
    """The semi-dual at column potentials."""

    columns: Matrix  # g_k, the potentials
    value: float  # φ
    gradient: Matrix  # c_k - Σ w_l c_l
    mean: Vector  # Σ w_k c_k
    error: float  # Σ w_k ‖c_k - Σ w_l c_l‖₁
    log_sums: tuple[Vector, ...]  # log Σ_j exp((g_kj - C_kij)/η), of all rows


def evaluate(family: Family, G: Matrix, eta: float, near: Evaluated | None = None) -> Evaluated:
    """Return φ and its gradient, in one pass over stored costs, or in two along axes.

    An evaluation nearby, at the same η, saves the search for largest exponents.
    """
    columns, log_sums = np.empty(family.shape), []
    for k, support in enumerate(family.supports):
        known = None if near is None else (near.columns[k], near.log_sums[k])
        columns[k], lse = _summed(support.problem, G[k], eta, known)
        log_sums.append(lse)
    problems = [support.problem for support in family.supports]
    value = eta * family.mean_of([dot(x.p, lse) for x, lse in zip(problems, log_sums, strict=True)])
    mean = family.mean(columns)
    return Evaluated(G, value, columns - mean, mean, family.spread(columns), tuple(log_sums))


def _summed(
    problem: Problem, g: Vector, eta: float, known: tuple[Vector, Vector] | None
) -> tuple[Vector, Vector]:
    """Return column sums of the plan whose rows are right, and log-sums of its rows."""
    geometry, p = problem.geometry, problem.p
    if geometry.is_separable:
        lse = geometry.lse_rows(g, eta)
        return exp(geometry.lse_cols(softmin(log(p), lse, eta), eta) + g / eta), lse
    before, lse = (g, np.full(p.size, np.inf)) if known is None else (known[0], known[1].copy())
    columns = ColumnSums(g.size)
    geometry.sweep(kernels.snapshot, g, before, ByRow(p), 1 / eta, ByRow(lse), columns)
    return columns.total, lse


def evaluation_work(family: Family) -> Work:
    """Return the work of one evaluation."""
    if any(support.problem.geometry.is_separable for support in family.supports):
        return Work.of(lse=2 * family.pass_entries)
    return Work.of(softmax=family.pass_entries, inner=family.pass_entries)


def inner(family: Family, X: Matrix, Y: Matrix) -> float:
    """Return Σ w_k <x_k, y_k>."""
    return family.mean_of([dot(x, y) for x, y in zip(X, Y, strict=True)])


@dataclass(slots=True)
class SemiDualState(SolverState):
    """The last evaluation of the semi-dual, in arrays that a checkpoint saves."""

    columns: Matrix
    violation: float
    value: float
    gradient: Matrix
    mean: Vector
    log_sums: Vector  # of all histograms, one after the other
    is_evaluated: bool  # false: only the columns are set

    def at(self, family: Family) -> Evaluated | None:
        """Return the last evaluation, if there is one."""
        if not self.is_evaluated:
            return None
        ends = np.cumsum([support.problem.p.size for support in family.supports])
        log_sums = tuple(np.split(self.log_sums, ends[:-1]))
        return Evaluated(
            self.columns, self.value, self.gradient, self.mean, self.violation, log_sums
        )

    def put(self, found: Evaluated) -> None:
        """Keep an evaluation."""
        self.columns, self.value, self.gradient = found.columns, found.value, found.gradient
        self.mean, self.violation, self.is_evaluated = found.mean, found.error, True
        self.log_sums = np.concatenate(found.log_sums)


def _unevaluated(family: Family, G: Matrix) -> tuple[Matrix, float, float, Matrix, Vector, Vector]:
    """Return the fields of a state that has column potentials and nothing else."""
    (k, m), n = family.shape, sum(support.problem.p.size for support in family.supports)
    return G, np.inf, np.inf, np.zeros((k, m)), np.zeros(m), np.zeros(n)


# -- L-BFGS ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineSearchTuning:
    """Numbers of the line search and of the steps' scaling."""

    decrease_share: float = 1e-4  # of the first slope, by which φ must fall
    flat_share: float = 0.9  # of the first slope, that may be left
    max_trials: int = 20
    round_off: float = 1e-15  # by which φ may rise, as a share of the largest cost
    least_mass: float = 0.03  # smallest mass of b that scales steps, as a share of the mean mass
    margin: float = 0.1  # share of an interval that a trial keeps from its ends


LINE_SEARCH = LineSearchTuning()


@dataclass(slots=True)
class LBFGSState(SemiDualState):
    """The last evaluation, and the steps and differences of gradients before it."""

    steps: np.ndarray  # (memory, k, m); the j-th since the history began is in slot j mod memory
    turns: np.ndarray  # differences of gradients along them
    products: Vector  # of steps and turns
    n_kept: int

    def slots(self) -> list[int]:
        """Return the slots of the kept steps, oldest first."""
        memory = len(self.steps)
        return [j % memory for j in range(max(0, self.n_kept - memory), self.n_kept)]


@dataclass(frozen=True, kw_only=True)
class LBFGS(FamilySolver):
    """Limited-memory BFGS steps on the semi-dual (Nocedal 1980), for an η that falls.

    Parameters
    ----------
    memory : int
        Pairs of steps and differences of gradients that are kept.
    """

    memory: int = 10

    about: ClassVar[MethodInfo] = MethodInfo(family="barycentres", paper="Nocedal", year=1980)

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 1)

    def remembered_bytes(self, family: Family) -> int:
        """Return the bytes of the pairs that are kept."""
        k, m = family.shape
        return 16 * self.memory * k * m

    def init(
        self, target: FamilyTarget, rng: Generator, potentials: tuple[Vector, ...] | None = None
    ) -> tuple[LBFGSState, Work]:
        """Return column potentials without a history."""
        k, m = target.family.shape
        fields = _unevaluated(target.family, target.columns(potentials))
        state = LBFGSState(
            *fields,
            is_evaluated=False,
            steps=np.zeros((self.memory, k, m)),
            turns=np.zeros((self.memory, k, m)),
            products=np.zeros(self.memory),
            n_kept=0,
        )
        return state, Work()

    def step(self, target: FamilyTarget, state: LBFGSState, rng: Generator) -> Work:
        """Move to the point that a search along a quasi-Newton direction ends at."""
        family, eta, (k, m) = target.family, target.eta, target.family.shape
        per_evaluation = evaluation_work(family) + Work.of(vector=6 * k * m)
        at, work = state.at(family), Work.of(vector=(8 * self.memory + 6) * k * m)
        if at is None:
            at = evaluate(family, state.columns, eta)
            work += per_evaluation
        slots = state.slots()
        direction = quasi_newton(family, state, at, eta, slots)
        slope = inner(family, at.gradient, direction)
        is_lost = not slope < 0
        if is_lost:
            direction = quasi_newton(family, state, at, eta, [])
            slope = inner(family, at.gradient, direction)
        found, n = _search(family, at, direction, slope, eta)
        state.n_kept = 0 if is_lost else state.n_kept
        self._keep(family, state, found.columns - at.columns, found.gradient - at.gradient)
        state.put(found)
        for _ in range(n):
            work += per_evaluation
        return work

    def _keep(self, family: Family, state: LBFGSState, step: Matrix, turn: Matrix) -> None:
        """Keep a step, in place of the oldest if the memory is full, if φ is convex along it."""
        product = inner(family, step, turn)
        if product > 0:
            slot = state.n_kept % self.memory
            state.steps[slot], state.turns[slot], state.products[slot] = step, turn, product
            state.n_kept += 1


def quasi_newton(
    family: Family, state: LBFGSState, at: Evaluated, eta: float, slots: list[int]
) -> Matrix:
    """Return -H ∇φ by the two loops over the kept steps (Nocedal 1980)."""
    r, shares = at.gradient.copy(), []
    for j in reversed(slots):
        share = inner(family, state.steps[j], r) / float(state.products[j])
        r -= share * state.turns[j]
        shares.append(share)
    scale = 1 / np.maximum(at.mean, LINE_SEARCH.least_mass / at.mean.size)
    if slots:
        turn, product = state.turns[slots[-1]], float(state.products[slots[-1]])
        r *= product / inner(family, turn, turn * scale) * scale
    else:
        r *= eta * scale
    for j, share in zip(slots, reversed(shares), strict=True):
        product = float(state.products[j])
        r += (share - inner(family, state.turns[j], r) / product) * state.steps[j]
    return -r


def _search(
    family: Family, at: Evaluated, direction: Matrix, slope: float, eta: float
) -> tuple[Evaluated, int]:
    """Return a point along a line where φ fell enough and is flat enough (Wolfe)."""
    tuning, slack = LINE_SEARCH, LINE_SEARCH.round_off * family.cost_max
    low, high, steep, t = (0.0, np.inf, slope, 1.0)
    rise = np.inf
    best = at
    for n in range(1, tuning.max_trials + 1):
        found = evaluate(family, at.columns + t * direction, eta, at)
        here = inner(family, found.gradient, direction)
        if not found.value <= at.value + tuning.decrease_share * t * slope + slack:
            high, rise = t, here
        elif here < tuning.flat_share * slope:
            low, steep, best = t, here, found
        else:
            return found, n
        if high == np.inf:
            t *= 2
        else:
            share = steep / (steep - rise) if rise > 0 else 0.5
            t = low + min(max(share, tuning.margin), 1 - tuning.margin) * (high - low)
    return best, tuning.max_trials


# -- PDASMD ----------------------------------------------------------------------------------


@dataclass(slots=True)
class BlockPDASMDState(SemiDualState):
    """The snapshot, and the sequences of Algorithm 1."""

    y: Matrix
    z: Matrix
    n_outer: int  # outer loops since the sequences began
    step_scale: float  # by which steps are longer than proved


@dataclass(frozen=True, kw_only=True)
class BlockPDASMD(FamilySolver):
    r"""PDASMD (Luo, Xie, Huo: Algorithm 1) on the finite sum that the semi-dual is.

    .. math:: φ(g) = \sum_{i_1, …, i_K} p_{1 i_1} ⋯ p_{K i_K} \sum_k w_k η \log \sum_j
        e^{(g_{kj} - C_{k i_k j})/η}

    A component is one row of every histogram. In the norm Σ w_k ‖g_k‖² the blocks are orthogonal,
    so every component is 1/η-smooth, as φ is. With single rows as components L̄ would be K/η. A
    step is one outer loop: as many rows as the histograms have, then one pass over the costs.

    Parameters
    ----------
    step_constant : float
        The 9 of the listing; 3 suffices for the Euclidean norm.
    """

    step_constant: float = 3.0

    about: ClassVar[MethodInfo] = MethodInfo(
        family="barycentres", paper="Luo, Xie, Huo", year=2023, needs_rows=True
    )

    def __post_init__(self) -> None:
        check_positive("step_constant", self.step_constant)

    def check(self, family: Family) -> None:
        """Refuse costs without rows to draw."""
        if not all(support.problem.geometry.has_rows for support in family.supports):
            raise InvalidProblem(
                "pdasmd draws rows of the costs, which a grid of this size does not have at hand; "
                "use method='anderson' or 'lbfgs'."
            )

    @property
    def longest(self) -> float:
        """The largest scale of steps."""
        return max(TUNING.max_mirror_step * self.step_constant, 1.0)

    def init(
        self, target: FamilyTarget, rng: Generator, potentials: tuple[Vector, ...] | None = None
    ) -> tuple[BlockPDASMDState, Work]:
        """Return column potentials, at which all sequences begin."""
        G = target.columns(potentials)
        state = BlockPDASMDState(
            *_unevaluated(target.family, G),
            is_evaluated=False,
            y=G.copy(),
            z=G.copy(),
            n_outer=0,
            step_scale=self.longest,
        )
        return state, Work()

    def step(self, target: FamilyTarget, state: BlockPDASMDState, rng: Generator) -> Work:
        """Do one outer loop (steps 3 to 13), and take the next snapshot."""
        family, eta, (k, m) = target.family, target.eta, target.family.shape
        drawn = _inner_steps(family) * k * m
        work = evaluation_work(family) + Work.of(
            softmax=drawn, vector=drawn * (4 + loops.step_operations("l2"))
        )
        at = state.at(family)
        if at is None:
            at = evaluate(family, state.columns, eta)
            work += evaluation_work(family)
        h = eta / self.step_constant
        steps = loops.Steps.of(state.n_outer, 0.5, h, state.step_scale)  # step 3, τ₂ = 1/2
        y, z, mean = _advanced(family, state, at, steps, eta, rng)
        found = evaluate(family, mean, eta, at)
        has_fallen = found.value <= at.value + 1e-14 * family.cost_max  # or round-off
        state.step_scale = loops.adapted(state.step_scale, self.longest, has_fallen=has_fallen)
        if has_fallen:
            state.y, state.z, state.n_outer = y, z, state.n_outer + 1
        else:  # begin again at the snapshot
            state.y, state.z, state.n_outer = at.columns.copy(), at.columns.copy(), 0
        state.put(found if has_fallen else at)
        return work


def _inner_steps(family: Family) -> int:
    """Return the number of inner steps: the mean number of rows of a histogram."""
    n_rows = sum(support.problem.p.size for support in family.supports)
    return -(-n_rows // family.shape[0])


def _advanced(
    family: Family,
    state: BlockPDASMDState,
    at: Evaluated,
    steps: loops.Steps,
    eta: float,
    rng: Generator,
) -> tuple[Matrix, Matrix, Matrix]:
    """Return y and z after a sample of rows (steps 7 to 12), and the mean of the y."""
    tau1, tau2, alpha, h = steps
    z, y = state.z - at.columns, state.y - at.columns
    y_sum, v, g = np.zeros(z.shape), np.empty(z.shape), np.empty(z.shape)
    n_inner = _inner_steps(family)
    for C, lse in _sampled(family, at, n_inner, rng):
        kernels.blocks_inner_loop(
            C, lse, family.weights, at.columns, at.gradient, 1 / eta, tau1, 1 - tau1 - tau2, alpha,
            h, z, y, y_sum, v, g,
        )  # fmt: skip
    return at.columns + y, at.columns + z, at.columns + y_sum / n_inner


def _sampled(
    family: Family, at: Evaluated, n_inner: int, rng: Generator
) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield cost rows that are drawn in proportion to their masses, and their log-sums."""
    k, m = family.shape
    problems = [support.problem for support in family.supports]
    drawn: list[Index] = [draw(rng, np.cumsum(x.p), n_inner, 1)[1].ravel() for x in problems]
    step = max(1, loops.TUNING.max_gathered_entries // (k * m))
    for first in range(0, n_inner, step):
        part = [rows[first : first + step] for rows in drawn]
        C = np.stack([x.geometry.gathered(i) for x, i in zip(problems, part, strict=True)], axis=1)
        lse = np.stack([x[i] for x, i in zip(at.log_sums, part, strict=True)], axis=1)
        yield C, lse
