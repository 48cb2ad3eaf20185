"""PDASMD and its batch version on the semi-dual (Luo, Xie, Huo: Algorithms 1, 2, Appendix C).

PDASGD (Xie, Luo, Huo 2022) is PDASMD in the Euclidean norm.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Potentials, Vector
from ..arguments import check_choice
from ..errors import InvalidProblem
from ..finite_sum.algorithm import Mirror, euclidean, exponent
from ..geometry.sweeps import ByRow, ColumnSums
from ..kernels import pdasmd as kernels
from ..kernels.vectors import entropy
from ..memory import size_text
from ..problems.duals import column_move, semi_dual, softmin
from ..problems.plan import Core, Explicit, Gibbs
from ..problems.problem import Entropic, Problem
from ..problems.work import Work
from . import stochastic_steps
from .base import EntropicSolver, Pace, SolverState, l1
from .entropic_dual import is_near_optimal
from .method_info import MethodInfo, Order
from .options import check_choices
from .stochastic_steps import (
    BATCHINGS,
    Steps,
    adapted,
    check_batching,
    coupling,
    draw_rows,
    step_operations,
    take_mirror_steps,
    take_steps,
)


@dataclass(frozen=True, kw_only=True)
class PDASMDTuning:
    """Tuning parameters of PDASMD."""

    max_mirror_step: float = 2.8  # first α_s τ₁ L̄ of an adaptive run: 25 times the listing's
    max_loop_rows: int = 10**6  # rows per outer loop; a thousand passes, if that is more
    max_float32_exponent: float = 1e4  # ‖C‖∞ / η whose exponents float32 holds to 3 digits
    # Passes over C are in float32 while the violation is large. They find it to 10⁻⁶, and φ to a
    # share of η that is a fifth of what any such violation costs: η violation² / 2.
    min_float32_violation: float = 3e-4
    float32_value_error: float = 1e-8  # of φ, as a share of η


TUNING = PDASMDTuning()


_CHOICES = {
    "smoothness": ("sharp", "paper", "least"),
    "average": ("sampled", "snapshot", "none"),
    "precision": ("single", "double"),
    "hybrid": ("sinkhorn",),
    "batching": BATCHINGS,
}


@dataclass(slots=True, kw_only=True)
class PDASMDState(SolverState):
    """The three sequences of Katyusha, values at the snapshot, and the running sums."""

    lam: Vector  # snapshot ṽ
    y: Vector  # proximal sequence
    z: Vector  # mirror sequence
    lse: Vector  # log-normalisers of all rows at ṽ
    mu: Vector  # ∇φ(ṽ)
    step_scale: float  # multiple of the proved mirror step
    is_single: bool  # whether passes over C take their exponentials in float32
    plan_sum: Matrix  # D_s
    column_sum: Vector  # its column sums
    best_lam: Vector  # snapshot of least φ so far, where an adaptive run restarts
    best_lse: Vector  # log-normalisers there
    best_mu: Vector
    best_value: float = np.inf
    n_outer: int = 0  # s, since the last restart
    value: float = np.inf  # φ(ṽ)
    violation: float = np.inf  # ‖∇φ(ṽ)‖₁, the violation of the snapshot's plan
    weight_sum: float = 0.0  # C_s


@dataclass(frozen=True, kw_only=True)
class PDASMD(EntropicSolver[PDASMDState]):
    """Descend the semi-dual by variance-reduced, accelerated stochastic mirror steps.

    A step is one outer loop: ⌈n/B⌉ inner steps on sampled rows, then one pass over C for the
    next snapshot, and for the averaged plan if it is kept. Unset options (None) follow the stop
    mode: the paper's constants, or sharp ones with adaptive steps.

    Parameters
    ----------
    norm : str
        Norm H of the proximal step: "linf", "l2", or any lp, as "l1" or "l1.5".
    batch_size : int
        Rows B drawn for an inner step.
    batching : {"paper", "long", "strata"}
        "paper": steps as short as without a batch. "long": steps as long as the batch allows
        (:mod:`.stochastic_steps`). "strata": the same, with a row from each of B strata.
    inner_loops : int, optional
        Inner steps l of an outer loop, by default ⌈n / B⌉.
    smoothness : {"sharp", "paper", "least"}, optional
        L̄ = 1/η, the paper's 5/η for l∞, or the least that is proved: 1/η for l∞ and 1/(2η) for
        l2. With ``stop="paper"`` "sharp" means "least".
    step_constant : float, optional
        The 9 of the listing.
    average : {"sampled", "snapshot", "none"}, optional
        Plan to average: x of a random y (step 15), x of the snapshot, or none at all.
    is_adaptive : bool, optional
        Lengthen the mirror step while φ falls, and restart at the best snapshot when it rises.
    precision : {"single", "double"}, optional
        Of the exponentials where C is stored: all of the inner loop, and those of the snapshot
        while its violation is large and no plan is averaged.
    mirror : {"euclidean"} or Mirror
        Mirror map w, 1-strongly convex in the norm (:mod:`epsilot.finite_sum`). Other maps than
        the Euclidean one, and other norms than l∞ and l2, run in NumPy.
    hybrid : {"sinkhorn"}, optional
        After each outer loop, update the columns of the snapshot exactly, as Sinkhorn would.
    """

    norm: str = "linf"
    batch_size: int = 1
    batching: str = "paper"
    inner_loops: int | None = None
    smoothness: str | None = None
    step_constant: float | None = None
    average: str | None = None
    is_adaptive: bool | None = None
    precision: str | None = None
    mirror: str | Mirror = "euclidean"
    hybrid: str | None = None

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated stochastic",
        paper="Luo, Xie, Huo 2023",
        year=2023,
        orders=(Order(2, eps=1, log=0.5),),
        is_in_table1=True,
        departure="the conditions on the plan's expectation are tested on the plan in hand",
        needs_rows=True,
    )
    pace: ClassVar[Pace] = Pace(start=0.03, factor=3.0, share=1.0)
    sharp_constant: ClassVar[float] = 9.0

    def __post_init__(self) -> None:
        check_choices(self, **_CHOICES)
        exponent(self.norm)
        if isinstance(self.mirror, str):
            check_choice("mirror", self.mirror, ("euclidean",))
        check_batching(self.batching, self.norm, is_euclidean=self.mirror == "euclidean")
        for name in ("batch_size", "inner_loops", "step_constant"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidProblem(f"{name} is {value}; it must be positive.")

    def resolved(self, stop: str, problem: Problem) -> Self:
        """Fill unset options with the printed constants, or with the sharp ones."""
        is_paper = stop == "paper"
        rows = self._inner_steps(problem.shape[0]) * self.batch_size
        most = max(TUNING.max_loop_rows, 1000 * problem.shape[0])
        if rows > most:
            raise InvalidProblem(
                f"batch_size={self.batch_size} and inner_loops={self.inner_loops} draw {rows:,} "
                f"rows ({size_text(16 * rows)}) in one outer loop, which no limit interrupts; at "
                f"most {most:,} are allowed (lower batch_size or inner_loops)."
            )
        can_be_single = self._is_compiled and problem.geometry.is_dense
        defaults: dict[str, Any] = {
            "smoothness": "paper" if is_paper else "sharp",
            "step_constant": 9.0 if is_paper else self.sharp_constant,
            "average": "sampled" if is_paper else "none",
            "is_adaptive": not is_paper,
            "precision": "single" if can_be_single and not is_paper else "double",
        }
        chosen = {k: v for k, v in defaults.items() if getattr(self, k) is None}
        if is_paper and self.smoothness == "sharp":
            chosen["smoothness"] = "least"
        return dataclasses.replace(self, **chosen)

    def memory(self, problem: Problem) -> int:
        """Return the bytes of the averaged plan, and of its copy for a certificate."""
        return 0 if self.average == "none" else 2 * problem.geometry.nbytes

    def _inner_steps(self, n: int) -> int:
        """Return the steps l of the inner loop."""
        return -(-n // self.batch_size) if self.inner_loops is None else self.inner_loops

    # -- the iteration ---------------------------------------------------------------------

    def init(
        self, problem: Entropic, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[PDASMDState, Work]:
        """Start all sequences at zero, or at the given column potential (steps 1 and 4)."""
        n, m = problem.shape
        lam = np.zeros(m) if potentials is None else potentials[1].copy()
        shape = (0, 0) if self.average == "none" else (n, m)
        is_single = self.average == "none" and self._unit(problem)[1] is np.float32
        state = PDASMDState(
            lam=lam,
            y=lam.copy(),
            z=lam.copy(),
            lse=np.full(n, np.inf),
            mu=np.zeros(m),
            step_scale=self._longest,
            is_single=is_single,
            plan_sum=np.zeros(shape),
            column_sum=np.zeros(m),
            best_lam=lam.copy(),
            best_lse=np.empty(n),
            best_mu=np.empty(m),
        )
        work = self._move(problem, state, lam)
        self._keep_best(state)
        return state, work

    def step(self, problem: Entropic, state: PDASMDState, rng: Generator) -> Work:
        """Do one outer loop (steps 3 to 16) and take the next snapshot."""
        n, m = problem.shape
        n_inner, steps = self._inner_steps(n), self._steps(problem, state)  # step 3
        selected, sample = draw_rows(rng, problem.p, n_inner, self.batch_size, self.batching)
        drawn = problem, state, steps, sample, selected
        if self._is_compiled:
            unit, dtype = self._unit(problem)
            lam, y = take_steps(*drawn, unit=unit, dtype=dtype, norm=self.norm)  # up to step 13
        else:
            lam, y = take_mirror_steps(*drawn, norm=self.norm, mirror=self._map(m))
        work = Work.of(
            softmax=n_inner * self.batch_size * m,
            vector=n_inner * m * (self.batch_size + step_operations(self.norm)),
        )
        if self.average != "none":
            work += self._average(problem, state, lam, y, 1 / steps.tau1)  # steps 14 to 16
        else:
            work += self._move(problem, state, lam)
        state.n_outer += 1
        if self.is_adaptive:
            self._safeguard(problem, state)
        if self.hybrid == "sinkhorn":
            work += self._update_columns(problem, state)
        return work

    def _steps(self, problem: Entropic, state: PDASMDState) -> Steps:
        """Return the constants of the next outer loop."""
        largest = float((problem.q + state.mu).max())
        smoothness, tau2 = coupling(self.batching, self.batch_size, self._smoothness, largest)
        h = problem.eta / (self._constant * smoothness)
        return Steps.of(state.n_outer, tau2, h, state.step_scale)

    @property
    def _is_compiled(self) -> bool:
        """Whether a kernel exists for the norm and the mirror map."""
        return self.norm in ("linf", "l2") and self.mirror == "euclidean"

    def _map(self, size: int) -> Mirror:
        """Return the mirror map, the Euclidean one made 1-strongly convex in the norm."""
        return euclidean(size, self.norm) if isinstance(self.mirror, str) else self.mirror

    @property
    def _smoothness(self) -> float:
        """L̄ η: 5 as printed for l∞, where 1 is enough; 1 as printed for l2, where 1/2 is.

        u'∇²φ_i u is n p_i / η times a variance of u, at most ‖u‖∞² and ‖u‖₂² / 2.
        """
        if self.norm == "l2":
            return 0.5 if self.smoothness == "least" else 1.0
        return 5.0 if self.norm == "linf" and self.smoothness == "paper" else 1.0

    @property
    def _constant(self) -> float:
        return 9.0 if self.step_constant is None else self.step_constant

    @property
    def _longest(self) -> float:
        """Return the largest multiple of the listing's mirror step that is tried."""
        return max(TUNING.max_mirror_step * self._constant, 1.0) if self.is_adaptive else 1.0

    def _unit(self, problem: Entropic) -> tuple[float, type[np.floating]]:
        """Return the unit of cost of the inner loop, and its precision."""
        geometry, cost_max = problem.geometry, problem.geometry.bounds[1]
        is_in_range = 0 < cost_max <= TUNING.max_float32_exponent * problem.eta
        if self.precision == "single" and geometry.is_dense and is_in_range:
            return cost_max, np.float32
        return 1.0, np.float64

    def _move(self, problem: Entropic, state: PDASMDState, lam: Vector) -> Work:
        """Take the snapshot at λ: log-normalisers and full gradient (step 4 of the next loop).

        The pass is in float32 while the violation is large, then in float64.
        """
        unit, _ = self._unit(problem) if state.is_single else (1.0, None)
        columns = ColumnSums(lam.size)
        problem.geometry.sweep(
            kernels.snapshot, lam / unit, state.lam / unit, ByRow(_frozen(problem.p)),
            unit / problem.eta, ByRow(state.lse), columns, unit=unit if state.is_single else None,
        )  # fmt: skip
        self._settle(problem, state, lam, columns.total)
        work = _pass_work(problem)
        if state.is_single and state.violation < TUNING.min_float32_violation:
            state.is_single, state.best_value = False, np.inf
            work += self._move(problem, state, lam)
        return work

    def _average(
        self, problem: Entropic, state: PDASMDState, lam: Vector, y: Vector, weight: float
    ) -> Work:
        """Take the snapshot at λ and add the plan of y, or of λ, to the running sums."""
        y = y if self.average == "sampled" else lam
        columns, y_columns = ColumnSums(lam.size), ColumnSums(lam.size)
        problem.geometry.sweep(
            kernels.move_and_average, lam, y, state.lam, ByRow(_frozen(problem.p)),
            1 / problem.eta, weight, ByRow(state.lse), columns, y_columns, ByRow(state.plan_sum),
        )  # fmt: skip
        state.column_sum += weight * y_columns.total
        state.weight_sum += weight
        self._settle(problem, state, lam, columns.total)
        n, m = problem.shape
        averaged = Work.of(softmax=n * m * (self.average == "sampled"), vector=3 * n * m + n)
        return _pass_work(problem) + averaged

    def _settle(
        self, problem: Entropic, state: PDASMDState, lam: Vector, column_sum: Vector
    ) -> None:
        state.lam = lam
        state.mu = column_sum - problem.q
        state.violation = l1(state.mu)
        state.value = semi_dual(problem, lam, state.lse)

    def _keep_best(self, state: PDASMDState) -> None:
        state.best_lam, state.best_lse = state.lam.copy(), state.lse.copy()
        state.best_mu, state.best_value = state.mu.copy(), state.value

    def _update_columns(self, problem: Entropic, state: PDASMDState) -> Work:
        """Move the snapshot, y and z by η log(q_j / (q + μ)_j) unless φ rises.

        The column sums q + μ are known. The log-normalisers at the new point, which are
        Sinkhorn's row update, take a pass. φ falls by at least η KL(q | q + μ).
        """
        lam, lse, mu, value = state.lam, state.lse.copy(), state.mu, state.value
        slack, move = self._slack(problem, state), column_move(problem, problem.q + mu)
        work = Work.of(vector=7 * lam.size) + self._move(problem, state, lam + move)
        if state.value <= value + slack:
            state.y, state.z = state.y + move, state.z + move
        else:
            state.lam, state.lse, state.mu = lam, lse, mu
            state.value, state.violation = value, l1(mu)
        if self.is_adaptive:
            self._keep_best(state)
        return work

    def _slack(self, problem: Entropic, state: PDASMDState) -> float:
        """Return the rise of φ that round-off alone can cause."""
        slack = 1e-14 * (abs(state.value) + problem.geometry.bounds[1])
        return slack + TUNING.float32_value_error * problem.eta if state.is_single else slack

    def _safeguard(self, problem: Entropic, state: PDASMDState) -> None:
        """Lengthen the step if φ fell; else return to the best snapshot with half the step."""
        has_fallen = state.value <= state.best_value + self._slack(problem, state)
        state.step_scale = adapted(state.step_scale, self._longest, has_fallen=has_fallen)
        if has_fallen:
            self._keep_best(state)
            return
        state.lam, state.lse = state.best_lam.copy(), state.best_lse.copy()
        state.mu, state.value = state.best_mu.copy(), state.best_value
        state.violation = l1(state.mu)
        state.y, state.z, state.n_outer = state.lam.copy(), state.lam.copy(), 0
        state.plan_sum[:], state.column_sum[:], state.weight_sum = 0, 0, 0.0

    # -- plans, potentials and the published rule ----------------------------------------------

    def candidates(self, problem: Entropic, state: PDASMDState) -> list[tuple[Core, Vector]]:
        """Return the averaged plan if there is one, and the plan of the snapshot."""
        row, lam = self.potentials(problem, state)
        found: list[tuple[Core, Vector]] = [
            (Gibbs(problem.geometry, row, lam.copy(), problem.eta), row)
        ]
        if state.weight_sum > 0:
            found.insert(0, (Explicit(state.plan_sum / state.weight_sum), row))
        return found

    def potentials(self, problem: Entropic, state: PDASMDState) -> Potentials:
        """Return the row potential of the snapshot, and the snapshot."""
        return softmin(problem.log_p, state.lse, problem.eta), state.lam

    def meets_published_rule(self, problem: Entropic, state: PDASMDState, tolerance: float) -> bool:
        """Apply Appendix C to the realised average: violation <= ε'/2 and f(X) + φ <= ε/4."""
        if self.average == "none":
            return state.violation <= tolerance
        if state.weight_sum == 0:
            return False
        if l1(state.column_sum / state.weight_sum - problem.q) > tolerance:
            return False
        dual = state.value + problem.eta * entropy(problem.p)  # semi_dual omits the entropy
        return is_near_optimal(problem, state.plan_sum / state.weight_sum, dual)


def _frozen(x: Vector) -> Vector:
    """Return a read-only view, so that kernels compile for one type only."""
    x = x.view()
    x.setflags(write=False)
    return x


def _pass_work(problem: Entropic) -> Work:
    """Return the work of one snapshot: all softmax rows, their sum and their logarithms."""
    n, m = problem.shape
    return Work.of(softmax=n * m, inner=n * m, vector=n)


@dataclass(frozen=True, kw_only=True)
class PDASGD(PDASMD):
    """Descend the semi-dual by variance-reduced, accelerated stochastic gradient steps.

    :class:`PDASMD` with the l2 norm. The Euclidean variance bound (Allen-Zhu 2017) makes the
    step constant 3 sufficient: the default with a certificate. The listing has 9.
    """

    norm: str = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm != "l2":
            raise InvalidProblem(
                f"norm is {self.norm!r}; pdasgd is the l2 case (use method='pdasmd' for others)."
            )

    about: ClassVar[MethodInfo] = MethodInfo(
        family="accelerated stochastic",
        paper="Xie, Luo, Huo 2022",
        year=2022,
        orders=(Order(2.5, eps=1, log=0.5),),
        is_in_table1=True,
        departure="the conditions on the plan's expectation are tested on the plan in hand",
        needs_rows=True,
    )
    sharp_constant: ClassVar[float] = stochastic_steps.TUNING.euclidean_constant
