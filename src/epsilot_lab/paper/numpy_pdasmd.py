"""PDASMD-B in NumPy, a batch at a time: what panels d and h timed, beside the compiled kernel.

Every inner step is a dozen calls on arrays of B rows. A call costs about a microsecond whatever
B is, so that larger batches share it among more rows; the compiled kernel has no such price.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from epsilot import certify
from epsilot._types import Matrix, Vector
from epsilot.finite_sum.algorithm import draw
from epsilot.version import __version__

from ..environment import machine, versions
from ..instances import images
from ..store import Line
from .image_tasks import RETURNED, source_name

#: Method name in the lines.
NAME = "pdasmd in NumPy"
#: The constant of steps 10 and 11.
STEP_CONSTANT = 9.0
#: Seconds of an inner step, of an entry of a drawn row, and of an entry of a pass over C.
STEP_SECONDS, DRAWN_SECONDS, PASS_SECONDS = 3.5e-5, 1.2e-8, 2.5e-8
#: Outer loops that Appendix C takes with B = 1 and L̄ = 1/η at ε = 0.05; they grow as √B / ε.
TYPICAL_LOOPS = 740


@dataclass
class Iterate:
    """The sequences of Algorithm 2 after some outer loops, and the running sums C_s and D_s."""

    snap: Vector
    y: Vector
    z: Vector
    plan_sum: Matrix
    column_sum: Vector
    weight_sum: float = 0.0
    n_outer: int = 0

    @classmethod
    def zero(cls, n: int) -> Iterate:
        """Return where the algorithm begins (step 1)."""
        snap, y, z, columns = np.zeros((4, n))
        return cls(snap, y, z, np.zeros((n, n)), columns)


@dataclass(frozen=True)
class Settings:
    """The entropic problem of Appendix C, and the options of the algorithm."""

    C: Matrix
    p: Vector
    q: Vector
    eta: float
    tolerance: float
    batch_size: int = 1
    smoothness: float = 1.0  # L̄ η
    inner_loops: int | None = None  # ⌈n/B⌉ by default

    @property
    def n_inner(self) -> int:
        """Inner steps of an outer loop."""
        return -(-self.p.size // self.batch_size) if self.inner_loops is None else self.inner_loops

    def violation(self, at: Iterate) -> float:
        """Return the l1 violation of the averaged plan, whose rows are exact."""
        return float(np.abs(at.column_sum / at.weight_sum - self.q).sum())

    @classmethod
    def of(
        cls,
        M: Matrix,
        a: Vector,
        b: Vector,
        eps: float,
        batch_size: int,
        smoothness: float,
        inner_loops: int | None = None,
    ) -> Settings:
        """Return what Appendix C prescribes for ε: η, smoothed marginals, tolerance ε'/2."""
        n = a.size
        slack = eps / (8 * float(M.max()))
        p, q = ((1 - slack / 8) * x + slack / (8 * n) for x in (a, b))
        return cls(M, p, q, eps / (4 * math.log(n)), slack / 2, batch_size, smoothness, inner_loops)


def outer_loop(problem: Settings, at: Iterate, rng: Generator) -> None:
    """Do steps 3 to 16 of Algorithm 2 with w = ‖·‖²/2 and H = l∞."""
    C, p, q, eta = problem.C, problem.p, problem.q, problem.eta
    n_inner = problem.n_inner
    tau1, tau2 = 2 / (at.n_outer + 4), 1 / (2 * problem.batch_size)
    h = eta / (STEP_CONSTANT * problem.smoothness)
    alpha = h / tau1
    S = softmax(C, at.snap, eta)
    mu = p @ S - q
    selected, sample = draw(rng, np.cumsum(p), n_inner, problem.batch_size)
    y_sum = np.zeros_like(q)
    for step, rows in enumerate(sample):
        v = tau1 * at.z + tau2 * at.snap + (1 - tau1 - tau2) * at.y
        g = mu + (softmax(C[rows], v, eta) - S[rows]).sum(axis=0) / problem.batch_size
        at.z -= alpha * g
        at.y = v - h * np.abs(g).sum() * np.sign(g)
        y_sum += at.y
        if step == selected:
            chosen = at.y
    at.snap = y_sum / n_inner
    X = p[:, None] * softmax(C, chosen, eta)
    at.plan_sum += X / tau1
    at.column_sum += X.sum(axis=0) / tau1
    at.weight_sum += 1 / tau1
    at.n_outer += 1


def softmax(C: Matrix, v: Vector, eta: float) -> Matrix:
    """Return the softmax of every row of (v - C) / η."""
    T = (v - C) / eta
    T -= T.max(axis=1, keepdims=True)
    np.exp(T, out=T)
    T /= T.sum(axis=1, keepdims=True)
    return T


def is_done(problem: Settings, at: Iterate) -> bool:
    """Apply Appendix C to the average: violation at most ε'/2, and f(X) + φ at most ε/4."""
    if problem.violation(at) > problem.tolerance:
        return False
    X, eta = at.plan_sum / at.weight_sum, problem.eta
    f = (problem.C * X).sum() + eta * (X * np.log(X, where=X > 0, out=np.zeros_like(X))).sum()
    T = (at.snap - problem.C) / eta
    top = T.max(axis=1)
    lse = top + np.log(np.exp(T - top[:, None]).sum(axis=1))
    phi = eta * (problem.p * (lse - np.log(problem.p))).sum() - (problem.q * at.snap).sum()
    return bool(f + phi <= 4 * problem.tolerance * problem.C.max())


@dataclass(frozen=True)
class NumpyTask:
    """PDASMD-B in NumPy on a pair of images, run to the paper's stop and timed."""

    data: str
    side: int
    seed: int
    eps: float
    batch_size: int
    inner_loops: int | None = None

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from those of all solves between images."""
        return {
            "data": source_name(self.data),
            "side": self.side,
            "seed": self.seed,
            "method": NAME,
            "stop": "paper",
            "eps": self.eps,
            "given": {
                "batch_size": self.batch_size,
                "smoothness": "sharp",
                **({} if self.inner_loops is None else {"inner_loops": self.inner_loops}),
            },
            "is_timed": True,
            "version": __version__,
        }

    @property
    def seconds(self) -> float:
        """Expected time."""
        n = self.side**2
        loops = TYPICAL_LOOPS * math.sqrt(self.batch_size) * 0.05 / self.eps
        inner = STEP_SECONDS * -(-n // self.batch_size) + DRAWN_SECONDS * n * n
        return loops * (inner + PASS_SECONDS * n * n)

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{NAME}, n = {self.side**2}, B = {self.batch_size}, {self.data}"

    @property
    def is_timed(self) -> bool:
        """Tell that it runs alone on the machine."""
        return True

    @property
    def variant(self) -> tuple[str]:
        """The choices that decide which kernels are compiled: there are none."""
        return (NAME,)

    def warm_up(self) -> None:
        """Do nothing: nothing is compiled."""

    def line(self) -> Line:
        """Solve, certify and return the line."""
        M, a, b = images(self.side, self.seed, self.data)
        problem = Settings.of(M, a, b, self.eps, self.batch_size, 1.0, self.inner_loops)
        rng, at = np.random.default_rng(self.seed), Iterate.zero(a.size)
        began = time.process_time()  # other programs do not count
        while at.n_outer == 0 or not is_done(problem, at):
            outer_loop(problem, at, rng)
        seconds = time.process_time() - began
        found = certify(M, a, b, plan=at.plan_sum / at.weight_sum, potentials=(0 * a, at.snap))
        return {
            **self.identity,
            "n": a.size,
            "B": self.batch_size,
            "operations": None,
            "certificate_operations": 0,
            "n_iter": at.n_outer,
            "gap": found.gap,
            "value": found.upper,
            "lower_bound": found.lower,
            "value_of": RETURNED,
            "is_certified": found.gap <= self.eps,
            "has_ended": True,
            "versions": versions(),
            "machine": machine(),
            "seconds": seconds,
        }
