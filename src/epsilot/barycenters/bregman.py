"""Iterative Bregman projections in logarithms, with a falling η, overrelaxed or accelerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from .._types import Matrix, Vector
from ..arguments import check_count, is_real
from ..errors import InvalidProblem
from ..kernels.products import cholesky, cholesky_solve
from ..kernels.vectors import dot, exp, log
from ..problems.duals import softmin
from ..problems.work import Work
from ..solvers.base import SolverState
from ..solvers.method_info import MethodInfo
from ..wording import shown
from .family import Family
from .stages import FamilySolver, FamilyTarget


class Projected(NamedTuple):
    """The image of column potentials, and how far their plans' columns are from a common b."""

    columns: Matrix
    error: float


def projected(family: Family, G: Matrix, eta: float) -> Projected:
    r"""Project onto given rows, then onto equal columns (Benamou et al. 2015, Section 3.2).

    With f_k = η (log p_k - LSE_j((g_k - C_k)/η)) and log q_k = LSE_i((f_k - C_k)/η), the image is
    g_k = η (Σ_l w_l log q_l - log q_k), for which Σ w_k g_k = 0 holds.
    """
    log_q = np.empty(family.shape)
    for k, support in enumerate(family.supports):
        problem = support.problem
        f = softmin(log(problem.p), problem.geometry.lse_rows(G[k], eta), eta)
        log_q[k] = problem.geometry.lse_cols(f, eta)
    columns = exp(log_q + G / eta)  # of the plans of f and G, whose rows are right
    return Projected(eta * (family.mean(log_q) - log_q), family.spread(columns))


@dataclass(slots=True)
class BregmanState(SolverState):
    r"""Column potentials, and the steps that Anderson's acceleration mixes.

    x⁺ = T(x) - Σ γ_j ΔT_j, where γ minimises ‖r - Σ γ_j Δr_j‖ and r = T(x) - x (Anderson 1965,
    *Iterative Procedures for Nonlinear Integral Equations*; Walker, Ni 2011). Differences are kept
    in turns: the j-th since the history began is in slot j modulo the memory.
    """

    columns: Matrix
    violation: float
    residuals: Matrix  # (memory, k m) differences of residuals
    images: np.ndarray  # (memory, k, m) differences of T(x)
    normal: Matrix  # products of the kept differences of residuals, oldest first
    last_residual: Vector
    last_image: Matrix
    least: float  # least squared residual since the history began
    n_kept: int  # differences since the history began
    has_last: bool  # whether there is a last residual

    @classmethod
    def at(cls, G: Matrix, memory: int) -> BregmanState:
        """Return a state without a history."""
        k, m = G.shape
        return cls(
            columns=G,
            violation=np.inf,
            residuals=np.zeros((memory, k * m)),
            images=np.zeros((memory, k, m)),
            normal=np.zeros((memory, memory)),
            last_residual=np.zeros(k * m),
            last_image=np.zeros((k, m)),
            least=np.inf,
            n_kept=0,
            has_last=False,
        )

    def forget(self) -> None:
        """Begin a new history."""
        self.least, self.n_kept, self.has_last = np.inf, 0, False

    def mixed(self, image: Matrix, weights: Matrix) -> Matrix:
        """Return the next point, given T(x); ``weights`` are factors of rows in the norm.

        A residual that is far too large drops the history, so that the plain iteration, which
        converges, goes on.
        """
        if len(self.residuals) == 0:
            return image
        residual = (weights * (image - self.columns)).ravel()
        size = dot(residual, residual)
        # Mixing has failed if the squared residual is 100 times the least since the history began.
        if not size <= 100 * self.least:
            self.forget()
        self.least = min(self.least, size)
        if self.has_last:
            self._keep(residual - self.last_residual, image - self.last_image)
        self.last_residual, self.last_image, self.has_last = residual, image, True
        return self._combined(residual, image)

    def _slots(self) -> list[int]:
        """Return the slots of the kept differences, oldest first."""
        memory = len(self.residuals)
        return [j % memory for j in range(max(0, self.n_kept - memory), self.n_kept)]

    def _keep(self, residual: Vector, image: Matrix) -> None:
        """Add differences to the history, in place of the oldest if it is full."""
        memory = len(self.residuals)
        if self.n_kept >= memory:
            self.normal[:-1, :-1] = self.normal[1:, 1:].copy()
        self.residuals[self.n_kept % memory] = residual
        self.images[self.n_kept % memory] = image
        self.n_kept += 1
        slots = self._slots()
        n = len(slots)
        products = [dot(self.residuals[j], residual) for j in slots]
        self.normal[n - 1, :n] = self.normal[:n, n - 1] = products

    def _combined(self, residual: Vector, image: Matrix) -> Matrix:
        """Return the image less the best combination of differences."""
        slots = self._slots()
        if not slots:
            return image
        normal = self.normal[: len(slots), : len(slots)].copy()
        normal[np.diag_indices(len(slots))] += 1e-10 * float(normal.trace())  # a ridge
        factor = cholesky(normal)
        if factor is None:
            self.forget()
            return image
        products = np.array([dot(self.residuals[j], residual) for j in slots])
        gamma = cholesky_solve(factor, products)
        mixed, part = image.copy(), np.empty(image.shape)
        for share, j in zip(gamma, slots, strict=True):
            mixed -= np.multiply(share, self.images[j], out=part)
        return mixed


@dataclass(frozen=True, kw_only=True)
class Bregman(FamilySolver):
    """Iterative Bregman projections of one family of marginals after the other, in logarithms.

    Benamou, Carlier, Cuturi, Nenna, Peyré 2015, *Iterative Bregman Projections for Regularized
    Transportation Problems*, for an η that falls when rounding adds little to the gap.

    Parameters
    ----------
    relaxation : float
        ω in (0, 2): g moves ω times as far as the projection.
    memory : int
        Steps that Anderson's acceleration mixes; 0: none.
    """

    relaxation: float = 1.0
    memory: int = 5

    about: ClassVar[MethodInfo] = MethodInfo(
        family="barycentres", paper="Benamou, Carlier, Cuturi, Nenna, Peyré", year=2015
    )

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 0)
        if not (is_real(self.relaxation) and 0 < self.relaxation < 2):
            raise InvalidProblem(
                f"relaxation is {shown(self.relaxation)}; it must be a number between 0 and 2."
            )

    def remembered_bytes(self, family: Family) -> int:
        """Return the bytes of the differences that are mixed."""
        k, m = family.shape
        return 16 * self.memory * k * m

    def init(
        self, target: FamilyTarget, rng: Generator, potentials: tuple[Vector, ...] | None = None
    ) -> tuple[BregmanState, Work]:
        """Return column potentials without a history."""
        return BregmanState.at(target.columns(potentials), self.memory), Work()

    def step(self, target: FamilyTarget, state: BregmanState, rng: Generator) -> Work:
        """Project once, and mix with the steps before."""
        family, (k, m) = target.family, target.family.shape
        image, error = projected(family, state.columns, target.eta)
        if self.relaxation != 1:
            image = state.columns + self.relaxation * (image - state.columns)
        state.columns = state.mixed(image, np.sqrt(family.weights)[:, None])
        state.violation = error
        return Work.of(lse=2 * family.pass_entries, vector=8 * k * m)
