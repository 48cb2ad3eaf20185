r"""Bounds of Gromov-Wasserstein for any two matrices: a lower one by profiles, an upper by descent.

For every coupling P, Σ (C1_ik - C2_jl)² P_kl is the cost of moving row i of C1 to row j of C2, as
masses on a line; it is at least the least such cost L_ij. So the optimum is at least that of the
transport problem with costs L (Mémoli 2011, the third lower bound). The gap carries no promise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .. import memory, parallel
from .._types import Matrix, Vector
from ..arguments import check_count, cost_matrix
from ..engine.clock import Clock, started
from ..engine.execute import execute
from ..engine.request import Request
from ..engine.result import Result
from ..engine.seeds import generator
from ..errors import CertificateError, InvalidProblem
from ..kernels.products import product
from ..kernels.proof import FEASIBLE
from ..kernels.row_profiles import profile_costs
from ..kernels.vectors import matvec, rmatvec
from ..problems.objective import BUG_NOTE
from ..problems.problem import check_totals, make_problem, side_weights
from .problem import ROUND_OFF

#: Gap of each transport problem, as a share of its costs.
TRANSPORT_GAP = 1e-10
#: Terms of a plain sum whose rounding ``ROUND_OFF`` bounds.
TERMS_PER_ROUND_OFF = 500
#: Most steps of a descent, and the fall, as a share of the size, that ends it.
MAX_DESCENT, LEAST_FALL = 200, 1e-9


@dataclass(frozen=True, kw_only=True)
class GromovBounds:
    """Bounds of Gromov-Wasserstein between two matrices, and the coupling of the upper one.

    Both bounds hold; how far they are apart depends on the matrices (see :func:`gromov_bounds`).

    Attributes
    ----------
    plan : (n, m) array
        The best coupling found.
    value : float
        Its objective, the upper bound.
    lower_bound : float
        No coupling has a smaller value.
    values : list of float
        The value at the end of each descent.
    n_ot : int
        Transport problems solved.
    is_complete : bool
        Whether no limit ended the descents.
    """

    plan: Matrix = field(repr=False)
    value: float  # of the plan
    lower_bound: float
    values: list[float] = field(repr=False)  # at the end of each descent
    n_ot: int
    is_complete: bool  # whether no limit ended the descents

    @property
    def gap(self) -> float:
        """``value - lower_bound``."""
        return self.value - self.lower_bound

    def _repr_html_(self) -> str:
        """Return both bounds for a notebook."""
        from ..display.notebook import card, gap_bar
        from ..display.text import outward

        lower, upper = outward(self.lower_bound, self.value)
        return card(
            f"Gromov-Wasserstein bounds, {self.plan.shape[0]:,} × {self.plan.shape[1]:,}",
            f"{lower} ≤ optimum ≤ {upper}",
            [f"gap {self.gap:.3g}; {self.n_ot:,} transport problems, {len(self.values)} descents"],
            bar=gap_bar(self.gap, max(abs(self.value), abs(self.lower_bound))),
        )


@dataclass(frozen=True, eq=False)
class MatrixPair:
    """Two matrices with masses of total 1."""

    A: Matrix
    B: Matrix
    p: Vector
    q: Vector
    M: Matrix | None

    @property
    def size(self) -> float:
        """Size of the numbers that are added up."""
        largest = float(max(np.abs(self.A).max(), np.abs(self.B).max()))
        return 4 * largest**2 + (0.0 if self.M is None else float(np.abs(self.M).max()))

    def profiles(self) -> Matrix:
        """Return the costs L of moving rows to rows, with the linear cost."""
        n, m = self.p.size, self.q.size
        sides = []
        for C, w in ((self.A, self.p), (self.B, self.q)):
            order = np.argsort(C, axis=1, kind="stable")
            sides += [np.take_along_axis(C, order, axis=1), w[order]]
        L = np.empty((n, m))
        parallel.share(profile_costs, n, n * m * (n + m), *sides, L)
        return L if self.M is None else L + self.M

    def constant(self) -> Vector:
        """Return Σ_k A_ik² p_k + Σ_l B_jl² q_l, and the same along columns, averaged."""
        A2, B2 = self.A * self.A, self.B * self.B
        rows = (matvec(A2, self.p) + rmatvec(A2, self.p)) / 2
        cols = (matvec(B2, self.q) + rmatvec(B2, self.q)) / 2
        return np.asarray(rows[:, None] + cols)

    def value(self, P: Matrix) -> float:
        """Return the objective of a coupling."""
        linear = 0.0 if self.M is None else float((self.M * P).sum())
        return float((self.bilinear(P) * P).sum()) + linear

    def bilinear(self, P: Matrix) -> Matrix:
        """Return half the gradient of the quadratic part: Σ (A_ik - B_jl)² P_kl, both ways."""
        forth = product(product(self.A, P), np.ascontiguousarray(self.B.T))
        back = product(product(np.ascontiguousarray(self.A.T), P), self.B)
        return self.constant() - (forth + back)


def make_matrix_pair(
    C1: ArrayLike, C2: ArrayLike, a: ArrayLike | None, b: ArrayLike | None, M: ArrayLike | None
) -> MatrixPair:
    """Validate two matrices and their weights, or raise InvalidProblem."""
    found = []
    for name, C in (("C1", C1), ("C2", C2)):
        try:
            X = np.ascontiguousarray(cost_matrix(C))
        except InvalidProblem as error:
            raise InvalidProblem(str(error).replace("M ", f"{name} ", 1)) from None
        if X.shape[0] != X.shape[1] or not np.abs(X).max() < 1e150:
            raise InvalidProblem(
                f"{name} has shape {X.shape} and entries up to {np.abs(X).max():.3g}; it must be "
                "square, one row per point, and finite (below 1e150)."
            )
        found.append(X)
    A, B = found
    n, m = len(A), len(B)
    (p, total), (q, other) = side_weights(a, "a", n, m), side_weights(b, "b", m, n)
    check_totals(a, b, total, other, "divide each by its sum")
    linear = None
    if M is not None:
        linear = np.ascontiguousarray(cost_matrix(M))
        if linear.shape != (n, m) or not np.isfinite(linear).all():
            raise InvalidProblem(
                f"M has shape {linear.shape}; it must be {(n, m)} and finite, C1's points by C2's."
            )
    memory.ask(80 * n * m, f"a coupling of {n:,} x {m:,} points, with costs,", "use fewer points")
    return MatrixPair(A, B, p / total, q / other, linear)


def bound_matrices(
    pair: MatrixPair, *, starts: int, seed: int, n_threads: int | None, max_seconds: float | None
) -> GromovBounds:
    """Return both bounds: descents start from the profiles, the product, and random couplings."""
    starts = check_count("starts", starts, 0)
    request = Request(
        seed=seed, n_threads=n_threads, max_seconds=max_seconds, eps=None, on_limit="ignore"
    )
    rng = generator(request.seed)
    with parallel.limit(n_threads), started(max_seconds) as clock:
        first = _transport(pair, pair.profiles())
        terms = 1 + sum(first.plan.shape) / TERMS_PER_ROUND_OFF
        lower = first.lower_bound - terms * ROUND_OFF * (pair.size + abs(first.lower_bound))
        if pair.M is None:
            lower = max(lower, 0.0)
        n_ot = 1
        ends: list[float] = []
        best, P = np.inf, first.plan
        for k in range(2 + starts):
            if clock.ending() is not None and ends:
                break
            if k == 0:
                Q = first.plan
            elif k == 1:
                Q = np.multiply.outer(pair.p, pair.q)
            else:
                Q = _transport(pair, rng.random((pair.p.size, pair.q.size))).plan
                n_ot += 1
            Q, value, steps = _descend(pair, Q, clock)
            n_ot += steps
            ends.append(value)
            if value < best:
                best, P = value, Q
        is_complete = clock.ending() is None
    error = np.abs(P.sum(axis=1) - pair.p).sum() + np.abs(P.sum(axis=0) - pair.q).sum()
    if not (error <= 10 * FEASIBLE and P.min() >= 0 and lower <= best + 1e-9 * pair.size):
        raise CertificateError(f"the coupling or its bounds are inconsistent. {BUG_NOTE}")
    return GromovBounds(
        plan=P,
        value=best,
        lower_bound=min(lower, best),
        values=ends,
        n_ot=n_ot,
        is_complete=is_complete,
    )


def _transport(pair: MatrixPair, C: Matrix) -> Result:
    """Solve a transport problem almost exactly."""
    gap = TRANSPORT_GAP * float(np.abs(C).max())
    request = Request(eps=gap or None, on_limit="ignore")
    return execute(make_problem(C, pair.p, pair.q, normalize=True), request)


def _descend(pair: MatrixPair, P: Matrix, clock: Clock) -> tuple[Matrix, float, int]:
    """Return the end of a conditional gradient descent with exact steps, and its problems."""
    linear = np.zeros_like(P) if pair.M is None else pair.M
    half = pair.bilinear(P)
    value, n_steps = float((half * P).sum()) + float((linear * P).sum()), 0
    for _ in range(MAX_DESCENT):
        if clock.ending() is not None:
            break
        S = _transport(pair, 2 * half + linear).plan
        n_steps += 1
        other = pair.bilinear(S)
        step = S - P
        slope = float(((2 * half + linear) * step).sum())
        curvature = float(((other - half) * step).sum())
        share = 1.0
        if curvature > 0:
            share = min(1.0, max(0.0, -slope / (2 * curvature)))
        fall = -(slope * share + curvature * share**2)
        if fall <= LEAST_FALL * pair.size:
            break
        P = (1 - share) * P + share * S
        half = (1 - share) * half + share * other
        value = float((half * P).sum()) + float((linear * P).sum())
    return P, pair.value(P) if n_steps else value, n_steps
