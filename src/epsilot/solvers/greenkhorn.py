"""Coordinate descent on the exp-dual: Greenkhorn and stochastic Sinkhorn.

Greenkhorn (Altschuler et al. 2017; Lin, Ho, Jordan 2019, 2022) updates the most violated row or
column. Stochastic Sinkhorn (Abid, Gower 2018; the paper's Appendix E) draws one at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from .._types import Potentials, Vector
from ..errors import InvalidProblem
from ..kernels import coordinate as kernels
from ..kernels.vectors import exp, log
from ..problems.duals import softmin_rows
from ..problems.plan import Core, Gibbs
from ..problems.problem import Entropic, Problem
from ..problems.work import Work
from .base import EntropicSolver, Pace, SolverState, l1
from .entropic_dual import JointPlan, block, log_masses, log_sums, masses
from .method_info import MethodInfo, Order
from .options import check_choices


@dataclass(slots=True, kw_only=True)
class CoordinateState(SolverState):
    """Both potentials and both marginals of the plan, rows first."""

    z: Vector  # row potential τ, then column potential λ
    sums: Vector  # running row sums, then column sums
    h: Vector  # violations ρ(p, r), then ρ(q, c)
    errors: Vector  # l1 error of the rows, and of the columns
    tops: Vector  # largest violation of the rows, and of the columns
    n_epochs: int = 0  # done so far
    violation: float = math.inf  # l1 marginal violation


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(JointPlan[CoordinateState], EntropicSolver[CoordinateState]):
    r"""Minimise the exp-dual over one row or one column at a time, in O(n) operations.

    .. math:: ψ(u, v) = \sum_{ij} X_{ij} - <u, p> - <v, q>, \quad X_{ij} = e^{u_i+v_j-C_{ij}/η}

    An update of row i lowers ψ by :math:`ρ(p_i, r_i) = r_i - p_i + p_i \log(p_i / r_i)`; these
    violations steer the choice of coordinates. The new potential comes from a fresh
    log-sum-exp of the row; the running sums only choose coordinates and test the stop (with
    scalings from running sums, as printed by Lin et al., cancellation breaks the method).
    A step is an epoch of n + m updates.

    Parameters
    ----------
    start : {"rows", "zero"}, optional
        Start with exact rows, hence mass 1 (the default with ``stop="certificate"``), or
        from zero potentials (with ``stop="paper"``).
    is_normalized : bool, optional
        Whether the plan is scaled to mass 1 before it is rounded; by default yes with
        ``stop="certificate"``, and no with ``stop="paper"``.
    tested : {"epoch", "update"}, optional
        When the violation is compared with Appendix C's tolerance: after every epoch, or after
        every update as printed (the default with ``stop="paper"``). Plans scaled to mass 1 are
        tested after epochs.
    """

    start: str | None = None
    is_normalized: bool | None = None
    tested: str | None = None

    pace: ClassVar[Pace] = Pace(start=0.05, factor=4.0, share=1.0)
    _scans: ClassVar[int] = 1  # passes over h that choose a coordinate

    def _choice(self, rng: Generator, n_updates: int) -> tuple[float, Vector]:
        """Return the power of the violations, and the random numbers that choose coordinates."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        check_choices(self, start=("rows", "zero"), tested=("epoch", "update"))

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Start from a plan of mass 1 and certify one, unless ``stop="paper"``."""
        is_paper = stop == "paper"
        start = ("zero" if is_paper else "rows") if self.start is None else self.start
        is_normalized = not is_paper if self.is_normalized is None else self.is_normalized
        tested = ("update" if is_paper else "epoch") if self.tested is None else self.tested
        return replace(self, start=start, is_normalized=is_normalized, tested=tested)

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[CoordinateState, Work]:
        """Start from exact rows, which cannot overflow, or from zero potentials."""
        n, m = problem.shape
        work = Work.of(scale=n * m, both_marginals=n * m)
        if self.start == "zero" and potentials is None:
            z = np.zeros(n + m)
        else:
            lam = np.zeros(m) if potentials is None else potentials[1]
            z = np.concatenate([softmin_rows(problem, lam), lam])
            work += Work.of(lse=n * m)
        zeros = np.zeros(n + m)
        state = CoordinateState(
            z=z, sums=zeros, h=zeros.copy(), errors=np.zeros(2), tops=np.zeros(2)
        )
        self._sum_afresh(problem, state)
        return state, work

    def step(self, problem: Entropic, state: CoordinateState, rng: Generator) -> Work:
        """Update n + m coordinates, or fewer where the violation is small enough before."""
        n, m = problem.shape
        geometry, weights = problem.geometry, masses(problem)
        n_rows, n_updates = kernels.epoch(
            geometry.matrix(), geometry.transposed, 1 / problem.eta, weights, 1 / weights,
            log_masses(problem), state.z, state.sums, state.h,
            state.errors, state.tops, *self._choice(rng, n + m), self._enough(problem),
        )  # fmt: skip
        state.n_epochs += 1
        work = Work.of(
            coordinate=n_rows * m + (n_updates - n_rows) * n,
            vector=self._scans * (n + m) * n_updates,
        )
        # The running sums gather round-off
        if state.n_epochs % 2 == 0:
            self._sum_afresh(problem, state)
            work += Work.of(both_marginals=n * m)
        state.violation = self._violation(problem, state)
        return work

    def _enough(self, problem: Entropic) -> float:
        """Return the violation that ends an epoch: Appendix C's ε'/2, where ε = 2 η log nm."""
        if self.tested != "update" or self.is_normalized:
            return -1.0
        n, m = problem.shape
        largest = problem.geometry.bounds[1]
        if largest == 0:  # every plan is optimal
            return math.inf
        return problem.eta * float(log(float(max(n * m, 2)))) / (8 * largest)

    def _sum_afresh(self, problem: Entropic, state: CoordinateState) -> None:
        state.sums = exp(log_sums(problem, state.z)[0])
        weights = masses(problem)
        for k, own in enumerate((block(problem, True), block(problem, False))):
            held = weights[own]
            state.errors[k] = kernels.refresh(
                held, 1 / held, state.sums[own], 0.0, held, state.h[own]
            )
            state.tops[k] = state.h[own].max()
        state.violation = self._violation(problem, state)

    def _violation(self, problem: Entropic, state: CoordinateState) -> float:
        n = problem.shape[0]
        if not self.is_normalized:
            return float(state.errors.sum())
        sums = state.sums / state.sums[:n].sum()
        return l1(sums - masses(problem))

    def candidates(self, problem: Entropic, state: CoordinateState) -> list[tuple[Core, Vector]]:
        """Return the plan of the current potentials, scaled to mass 1 with ``is_normalized``."""
        n = problem.shape[0]
        row, lam = (x.copy() for x in self.potentials(problem, state))
        if self.is_normalized:
            row -= problem.eta * log(state.sums[:n].sum())
        return [(Gibbs(problem.geometry, row, lam, problem.eta), row)]

    def meets_published_rule(
        self, problem: Entropic, state: CoordinateState, tolerance: float
    ) -> bool:
        """Stop on the violation of recomputed marginals, not on the running sums alone."""
        if state.violation > tolerance:
            return False
        self._sum_afresh(problem, state)
        return state.violation <= tolerance


@dataclass(frozen=True, kw_only=True)
class Greenkhorn(CoordinateDescent):
    """Update the row or column whose violation ρ is largest.

    Parameters
    ----------
    start, is_normalized, tested : optional
        As in :class:`CoordinateDescent`.
    """

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Altschuler, Weed, Rigollet 2017; Lin, Ho, Jordan 2019",
        year=2017,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
        departure="a scaling comes from a fresh sum of its row or column, not from running sums",
        needs_dense=True,
    )

    def _choice(self, rng: Generator, n_updates: int) -> tuple[float, Vector]:
        return np.inf, np.zeros(n_updates)


@dataclass(frozen=True, kw_only=True)
class StochasticSinkhorn(CoordinateDescent):
    r"""Update a random row or column, drawn with probability :math:`h_I^α / \sum_i h_i^α`.

    The violations :math:`h = (ρ(p, r), ρ(q, c))` are those of Greenkhorn. The run stops on the
    realised violation, so the guarantee holds for this run, not in expectation.

    Parameters
    ----------
    power : float
        α >= 0: 0 is uniform, 1 the authors' choice, infinity Greenkhorn.
    start, is_normalized, tested : optional
        As in :class:`CoordinateDescent`.
    """

    power: float = 1.0

    about: ClassVar[MethodInfo] = MethodInfo(
        family="Sinkhorn",
        paper="Abid, Gower 2018; Luo, Xie, Huo 2023, Appendix E",
        year=2018,
        orders=(Order(2, eps=2, log=1),),
        is_in_table1=True,
        departure="a scaling comes from a fresh sum of its row or column, not from running sums",
        needs_dense=True,
    )
    _scans: ClassVar[int] = 2  # total, and the scan of its prefix sums

    def __post_init__(self) -> None:
        CoordinateDescent.__post_init__(self)
        if not self.power >= 0:
            raise InvalidProblem(
                f"power is {self.power}; it must be nonnegative (1 is the authors' choice)."
            )

    def _choice(self, rng: Generator, n_updates: int) -> tuple[float, Vector]:
        return float(self.power), rng.random(n_updates)
