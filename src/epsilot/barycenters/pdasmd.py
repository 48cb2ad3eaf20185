r"""PDASMD (Luo, Xie, Huo: Algorithm 1) on the finite sum that the barycentre's semi-dual is.

.. math:: φ(g) = \sum_{i_1, …, i_K} p_{1 i_1} ⋯ p_{K i_K} \sum_k w_k η \log \sum_j
    e^{(g_{kj} - C_{k i_k j})/η}

A component is one row of every histogram. In the norm Σ w_k ‖g_k‖² the blocks are orthogonal, so
every component is 1/η-smooth, as φ is. With single rows as components L̄ would be K/η.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._types import Index, Matrix
from ..arguments import check_count, check_positive
from ..engine.goal import Goal
from ..errors import InvalidProblem
from ..finite_sum.algorithm import draw
from ..kernels.pdasmd import blocks_inner_loop
from ..problems.work import Work
from ..solvers import stochastic_steps as loops
from ..solvers.pdasmd import TUNING
from .continuation import Continuation, Moved
from .family import Family
from .method import Start, Steps
from .semi_dual import Evaluated, evaluate, evaluation_work

#: How far φ may rise by rounding alone, as a share of the largest cost.
ROUND_OFF = 1e-14
#: Weight of the snapshot: 1/(2 B), of batches of one component.
TAU2 = 0.5


@dataclass(frozen=True, kw_only=True)
class BlockPDASMD(Continuation):
    """Accelerated stochastic steps with variance reduction in the Euclidean norm, for a falling η.

    A step is one outer loop: as many rows as the histograms have, then one pass over the costs.

    Parameters
    ----------
    seed : int
        Fixes the run.
    step_constant : float
        The 9 of the listing; 3 suffices for the Euclidean norm.
    """

    seed: int = 0
    step_constant: float = 3.0

    def __post_init__(self) -> None:
        check_count("seed", self.seed, 0)
        check_positive("step_constant", self.step_constant)

    def steps(self, family: Family, goal: Goal, start: Start | None = None) -> Steps:
        """Yield outer loops, or say why there are no rows to draw."""
        if not all(support.problem.geometry.has_rows for support in family.supports):
            raise InvalidProblem(
                "pdasmd draws rows of the costs, which a grid of this size does not have at hand; "
                "use method='anderson' or 'lbfgs'."
            )
        yield from super().steps(family, goal, start)

    def iteration(self, family: Family) -> OuterLoops:
        """Return the outer loops on a family."""
        return OuterLoops(family, self)


class OuterLoops:
    """Outer loops on one family, each from a snapshot to the next."""

    def __init__(self, family: Family, method: BlockPDASMD) -> None:
        self.family, self.constant = family, method.step_constant
        self.problems = [support.problem for support in family.supports]
        self.rng = np.random.default_rng(method.seed)
        self.cumulative = [np.cumsum(problem.p) for problem in self.problems]
        k, m = family.shape
        n_rows = sum(problem.p.size for problem in self.problems)
        self.n_inner = -(-n_rows // k)
        drawn = self.n_inner * k * m
        self.longest = max(TUNING.max_mirror_step * self.constant, 1.0)
        self.work = evaluation_work(family) + Work.of(
            softmax=drawn, vector=drawn * (4 + loops.step_operations("l2"))
        )
        self.clear()

    def clear(self) -> None:
        """Begin anew: nothing is known at another η."""
        self.at: Evaluated | None = None
        self.step_scale = self.longest

    def next(self, G: Matrix, eta: float) -> Moved:
        """Do one outer loop (steps 3 to 13), and take the next snapshot."""
        work = Work() + self.work
        if self.at is None:
            self._begin(evaluate(self.family, G, eta))
            work += evaluation_work(self.family)
        assert self.at is not None
        h = eta / self.constant
        steps = loops.Steps.of(self.n_outer, TAU2, h, self.step_scale)  # step 3
        found = evaluate(self.family, self._inner_steps(self.at, steps, eta), eta, self.at)
        self.n_outer += 1
        has_fallen = found.value <= self.at.value + ROUND_OFF * self.family.cost_max
        self.step_scale = loops.adapted(self.step_scale, self.longest, has_fallen=has_fallen)
        if has_fallen:
            self.at = found
        else:
            self._begin(self.at)
        return Moved(self.at.columns, self.at.error, work)

    def _begin(self, at: Evaluated) -> None:
        """Start all sequences at one point."""
        self.at, self.n_outer = at, 0
        self.y, self.z = at.columns.copy(), at.columns.copy()

    def _inner_steps(self, at: Evaluated, steps: loops.Steps, eta: float) -> Matrix:
        """Advance y and z through a sample (steps 7 to 12); return the mean of the y."""
        tau1, tau2, alpha, h = steps
        z, y = self.z - at.columns, self.y - at.columns
        y_sum, v, g = np.zeros(z.shape), np.empty(z.shape), np.empty(z.shape)
        mu = at.gradient
        for C, lse in self._sampled(at):
            blocks_inner_loop(
                C, lse, self.family.weights, at.columns, mu, 1 / eta, tau1, 1 - tau1 - tau2, alpha,
                h, z, y, y_sum, v, g,
            )  # fmt: skip
        self.z, self.y = at.columns + z, at.columns + y
        return at.columns + y_sum / self.n_inner

    def _sampled(self, at: Evaluated) -> Iterator[tuple[Matrix, Matrix]]:
        """Yield cost rows that are drawn in proportion to their masses, and their log-sums."""
        k, m = self.family.shape
        drawn: list[Index] = [
            draw(self.rng, x, self.n_inner, 1)[1].ravel() for x in self.cumulative
        ]
        step = max(1, loops.TUNING.max_gathered_entries // (k * m))
        for first in range(0, self.n_inner, step):
            part = [rows[first : first + step] for rows in drawn]
            C = np.stack(
                [x.geometry.gathered(i) for x, i in zip(self.problems, part, strict=True)], axis=1
            )
            lse = np.stack([x[i] for x, i in zip(at.log_sums, part, strict=True)], axis=1)
            yield C, lse
