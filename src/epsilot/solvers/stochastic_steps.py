r"""Stochastic steps on sampled rows of the cost: batches and the inner loop of PDASMD.

In the paper a batch of B rows lowers the weight of the snapshot, τ₂ = 1/(2B), and the steps keep
their length; the number of outer loops then grows like √B. The variance of B rows also allows steps
B times as long, up to the limit of the whole dual, which is smoother than its rows:

.. math:: L_⋄ = \max(L, \bar L / B), \quad τ_2 = \bar L / (2 B L_⋄), \quad α = 1 / (c τ_1 L_⋄)

The number of outer loops then stays the same up to B = L̄ / L (``docs/section6.md`` has the proof).
The Hessian of the dual is at most that of its first part, diag(Xᵀ1) / η, so the largest column sum
replaces L.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.random import Generator

from .. import parallel
from .._types import FloatArray, Index, Vector
from ..errors import InvalidProblem
from ..finite_sum.algorithm import Mirror, draw, proximal_step
from ..geometry import Geometry
from ..kernels import pdasmd as kernels
from ..kernels.vectors import exp
from ..problems.problem import Entropic

#: "paper": the step lengths of the listing. "long": steps as long as the batch allows. "strata":
#: the same, with one row from each of B strata of equal mass.
BATCHINGS = ("paper", "long", "strata")


@dataclass(frozen=True, kw_only=True)
class StochasticStepsTuning:
    """Tuning parameters of stochastic steps."""

    column_growth: float = 2.0  # factor by which column sums may grow within an outer loop
    step_recovery: float = 1.02  # factor by which a shortened mirror step grows per outer loop
    euclidean_constant: float = 3.0  # c of the mirror step 1 / (c τ₁ L⋄), for the l2 variance bound
    batch_chunks: int = 4  # chunks of a batch, which as many threads may share
    min_shared_entries: int = 1 << 12  # of a batch that threads share
    max_gathered_entries: int = 1 << 18  # of rows held at once where C is not stored


TUNING = StochasticStepsTuning()


class Coupling(NamedTuple):
    """The constants of an outer loop that depend on the batch."""

    smoothness: float  # L⋄ η, or L̄ η in the listing
    tau2: float


def check_batching(batching: str, norm: str, *, is_euclidean: bool) -> None:
    """Reject long steps in norms other than l2: in l∞ the dual is no smoother than its rows."""
    if batching != "paper" and not (norm == "l2" and is_euclidean):
        raise InvalidProblem(
            f"batching is {batching!r} with norm={norm!r}; steps as long as a batch allows are for "
            "norm='l2' with the Euclidean mirror map (use method='pdasgd')."
        )


def coupling(batching: str, batch_size: int, smoothness: float, largest_column: float) -> Coupling:
    """Return the constants of an outer loop, given L̄ η and the largest column sum."""
    if batching == "paper":
        return Coupling(smoothness, 1 / (2 * batch_size))
    shared = max(smoothness / batch_size, TUNING.column_growth * largest_column)
    return Coupling(shared, smoothness / (2 * batch_size * shared))


def draw_rows(
    rng: Generator, p: Vector, n_inner: int, batch_size: int, batching: str
) -> tuple[int, Index]:
    """Draw the index of step 15, and the rows of step 8, with probabilities from their masses.

    One row per stratum has the same expectation, and no more variance.
    """
    cumulative = np.cumsum(p)
    if batching != "strata":
        return draw(rng, cumulative, n_inner, batch_size)
    selected = int(rng.integers(n_inner))
    places = (rng.random((n_inner, batch_size)) + np.arange(batch_size)) / batch_size
    sample = np.searchsorted(cumulative, places * cumulative[-1], side="right")
    return selected, np.minimum(sample, p.size - 1)


def run_inner_loop(C: FloatArray, rows: Index, sample: Index, *args: object) -> None:
    """Run the inner steps of a sample, on several threads where a batch is large enough."""
    n_batch, m = sample.shape[1], C.shape[1]
    work = np.empty((4, m), dtype=C.dtype)
    if n_batch == 1:
        kernels.inner_loop(C, rows.ravel(), sample.ravel(), *args, work)
        return
    parts = np.empty((min(n_batch, TUNING.batch_chunks), m))
    own = np.empty((len(parts), m), dtype=C.dtype)
    shared = C, rows, sample, *args, work[:3], parts, np.zeros(3, dtype=np.int64)

    def leader() -> None:
        kernels.batch_inner_loop(*shared, work[3], True)

    def helper(k: int) -> None:
        kernels.batch_inner_loop(*shared, own[k], False)

    is_worth_it = (
        n_batch * m >= TUNING.min_shared_entries
        and sample.size * m >= 2 * parallel.TUNING.min_entries_per_thread
    )
    parallel.lead(leader, helper, len(parts) - 1, is_worth_it)


def sampled_rows(
    geometry: Geometry, sample: Index, unit: float, dtype: type[np.floating]
) -> Iterator[tuple[int, FloatArray, Index, Index]]:
    """Yield (first step, rows of C / unit, indices into them, row numbers) of a sample."""
    m = geometry.shape[1]
    if dtype is np.float32:
        ((_, _, C),) = geometry.single_blocks(unit)
        yield 0, C, sample, sample
        return
    if geometry.is_dense:
        yield 0, geometry.matrix(), sample, sample
        return
    n_steps, batch_size = sample.shape
    step = max(1, TUNING.max_gathered_entries // (batch_size * m))
    for first in range(0, n_steps, step):
        part = sample[first : first + step]
        C = np.stack([geometry.row(int(i)) for i in part.ravel()])
        C.setflags(write=False)  # as stored costs are: one compiled kernel for both
        yield first, C, np.arange(part.size).reshape(part.shape), part


class Steps(NamedTuple):
    """The constants of an outer loop (step 3)."""

    tau1: float
    tau2: float
    alpha: float  # of the mirror step
    h: float  # of the proximal step

    @classmethod
    def of(cls, n_outer: int, tau2: float, h: float, scale: float) -> Self:
        """Return the constants after ``n_outer`` loops, for a multiple of the mirror step."""
        tau1 = 2 / (n_outer + 4)
        return cls(tau1, tau2, scale * h / tau1, h)


def adapted(scale: float, longest: float, *, has_fallen: bool, shortest: float = 1.0) -> float:
    """Return the next multiple of the proved mirror step: longer while φ falls, else half of it."""
    return min(TUNING.step_recovery * scale, longest) if has_fallen else max(scale / 2, shortest)


class Sequences(Protocol):
    """The sequences of a state, with the log-normalisers and gradient at its snapshot."""

    lam: Vector  # ṽ
    y: Vector
    z: Vector
    lse: Vector
    mu: Vector


def step_operations(norm: str) -> int:
    """Return the operations of an inner step per column, without those of its rows.

    Norms other than l∞ and l2 take powers. Mirror maps are not counted.
    """
    return {"linf": 14, "l2": 11}.get(norm, 20)


def take_steps(
    problem: Entropic,
    state: Sequences,
    steps: Steps,
    sample: Index,
    selected: int,
    *,
    unit: float,
    dtype: type[np.floating],
    norm: str,
) -> tuple[Vector, Vector]:
    """Advance y and z through a sample in a kernel; return the mean of the y, and one of them.

    Values are relative to the snapshot, so that round-off vanishes with the distance from it.
    """
    tau1, tau2, alpha, h = steps
    m = problem.shape[1]
    z, y = (state.z - state.lam) / unit, (state.y - state.lam) / unit
    y_sum, y_selected = np.zeros(m), np.empty(m)
    snap, mu = (state.lam / unit).astype(dtype), state.mu.astype(dtype)
    for first, C, rows, part in sampled_rows(problem.geometry, sample, unit, dtype):
        run_inner_loop(
            C, rows, part, snap, state.lse, mu, unit / problem.eta, tau1, 1 - tau1 - tau2,
            alpha / unit, h / unit, norm == "linf", selected - first, z, y, y_sum, y_selected,
        )  # fmt: skip
    state.z, state.y = state.lam + unit * z, state.lam + unit * y
    return state.lam + unit * (y_sum / len(sample)), state.lam + unit * y_selected


def take_mirror_steps(
    problem: Entropic,
    state: Sequences,
    steps: Steps,
    sample: Index,
    selected: int,
    *,
    norm: str,
    mirror: Mirror,
) -> tuple[Vector, Vector]:
    """Advance y and z in any norm and with any mirror map, in NumPy (steps 7 to 11)."""
    tau1, tau2, alpha, h = steps
    z, y, found = state.z, state.y, []
    for rows in sample:
        v = tau1 * z + tau2 * state.lam + (1 - tau1 - tau2) * y
        g = state.mu.copy()
        for i in rows:
            C = problem.geometry.row(int(i))
            there = exp((state.lam - C) / problem.eta - state.lse[i])
            g += (_softmax((v - C) / problem.eta) - there) / rows.size
        z = mirror.step(z, alpha * g)
        y = v - h * proximal_step(g, norm)
        found.append(y)
    state.z, state.y = z, y
    return np.mean(found, axis=0), found[selected]


def _softmax(t: Vector) -> Vector:
    e = exp(t - t.max())
    return np.asarray(e / e.sum())
