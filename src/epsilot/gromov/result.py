"""Results of Gromov-Wasserstein: a coupling, its value, and a bound on the global optimum."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .. import memory
from .._types import Matrix
from ..deadline import OutOfTime
from ..display.results import CoupledClouds
from ..display.text import compile_note
from ..engine.certificate import Certificate
from ..errors import CertificateError
from ..kernels.moment_transport import moment
from ..problems.objective import BUG_NOTE
from ..problems.plan import Arcs, Plan
from .cover import Cover
from .oracle import TransportOracle
from .problem import ROUND_OFF, GromovProblem
from .verify import bound_of, check_values, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@dataclass(frozen=True, kw_only=True)
class GromovResult(CoupledClouds):
    """A coupling of two clouds, its value, and a lower bound that holds for all couplings.

    The inner costs are *squared* Euclidean distances. ``value - lower_bound = gap`` is proved for
    this run by :meth:`verify`, which ran before the result was returned. The coupling need not be
    the only one: symmetric clouds have several optima.

    Attributes
    ----------
    value : float
        ``Σ (|x_i - x_k|² - |y_j - y_l|²)² P_ij P_kl``, with the linear cost if there is one.
    lower_bound : float
        No coupling has a smaller value.
    n_ot : int
        Transport problems solved, those between samples of large clouds included.
    n_iter : int
        Steps of one or more transport problems.
    history : list of Record
        Bounds in the course of the run.
    converged : bool
        Whether the gap is at most ``target``.
    target : float
        The gap that was asked for.
    status : Status
        How the run ended; ``str(status)`` is a sentence.
    marginal_error : float
        l1 distance of the coupling from its marginals.
    method, choice : str
        The search that ran; why "auto" chose it.
    seed, version
        Seed, and version of the package.
    work : Work
        ``work.operations``: arithmetic operations.
    seconds, compile_seconds : float
        Time to solve; time to compile kernels during the call, which is not part of it.
    quantity : str
        The name of ``value``.
    problem : GromovProblem
        The validated clouds, in internal units.
    arcs, cover
        The coupling and the pieces that prove the bound, for :meth:`verify`.
    """

    problem: GromovProblem = field(repr=False)
    cover: Cover = field(repr=False)
    quantity: str = field(default="Gromov-Wasserstein objective", repr=False)

    @cached_property
    def plan_operator(self) -> Plan:
        """The coupling as an operator, with few nonzero entries."""
        problem, arcs = self.problem, self.arcs
        i, j = problem.rows[arcs.i], problem.cols[arcs.j]
        return Plan(Arcs(problem.shape, i, j, arcs.flow), mass=problem.mass)

    @cached_property
    def plan(self) -> Matrix:
        """The coupling as an (n, m) array, if it fits in memory."""
        n, m = self.problem.shape
        memory.ask(8 * n * m, f"a dense coupling of {n:,} x {m:,}", "use plan_operator")
        return self.plan_operator.toarray()

    @cached_property
    def cross_moment(self) -> Matrix:
        """Σ P_ij x_i y_jᵀ of the centred clouds, (dx, dy) in the user's axes."""
        problem, arcs = self.problem, self.arcs
        Z = np.zeros(problem.dimension)
        moment(problem.X, problem.W, arcs.i, arcs.j, arcs.flow, Z)
        return problem.to_user_moment(Z)

    def verify(self) -> Certificate:
        """Recompute value and bound from the stored arrays, by independent code, or raise.

        The check confirms that the pieces cover all cross moments, recomputes the bound of every
        piece from the stored values of V, and the value of the coupling. Then the values of V are
        recomputed from the stored potentials. This takes one pass over the costs for each of them,
        and is left out of the check that every run makes. Potentials of closed boxes beyond 512 MiB
        are not stored; for these the transport problems are solved again.

        Returns
        -------
        Certificate

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> X = np.array([[0.0, 0], [3, 0], [0, 1], [2, 2]])
        >>> result = epsilot.solve_gromov(X, X[::-1] + 1.0)
        >>> result.verify().is_feasible, abs(round(result.value, 9))
        (True, 0.0)
        """
        problem = self.problem
        worth, size = problem.unit * problem.mass, problem.scale
        oracle = TransportOracle(problem)
        try:
            check_values(problem, self.cover, lambda c: oracle.answer(c).prices)
        except OutOfTime:  # Ctrl-C ended a transport problem
            raise KeyboardInterrupt from None
        upper, error = value_of(problem, self.arcs)
        lower = min(bound_of(problem, self.cover), upper)
        tolerance = ROUND_OFF * size * worth
        if not abs(worth * upper - self.value) <= 100 * tolerance:
            raise CertificateError(
                f"the value is {self.value!r} and the coupling has {worth * upper!r}. {BUG_NOTE}"
            )
        if not self.lower_bound <= worth * lower + tolerance:
            raise CertificateError(
                f"the lower bound is {self.lower_bound!r} and the cover proves {worth * lower!r}. "
                f"{BUG_NOTE}"
            )
        value, bound = worth * upper, worth * lower
        return Certificate(value, bound, value - bound, problem.mass * error, True)

    def __repr__(self) -> str:
        (n, m), (dx, dy) = self.problem.shape, (self.problem.X.shape[1], self.problem.Y.shape[1])
        mark = "certified" if self.converged else "NOT at the target"
        return (
            f"<epsilot.GromovResult {n} x {m} in {dx} x {dy} dimensions, {self.method}: {mark}\n"
            f"  value {self.value:.10g}, lower bound {self.lower_bound:.10g}, "
            f"gap {self.gap:.3g} (target {self.target:.3g})\n"
            f"  {self.status}; {self.n_ot} transport problems, "
            f"{self.seconds:.3g} s{compile_note(self.compile_seconds)}>"
        )

    def report(self, path: str | os.PathLike[str], *, command: str | None = None) -> None:
        """Write an HTML page: the bounds, the history, and both clouds in one frame.

        The first cloud is mapped by the rotation or reflection that the cross moment implies. The
        file is self-contained and written atomically.

        Parameters
        ----------
        path
            A name that ends in ``.html``.
        command
            The command that made the result, to be shown; by default the call in Python.
        """
        from ..display.page import write_gromov_page

        write_gromov_page(self, path, command)

    def aligned(self) -> tuple[Matrix, Matrix]:
        """Return both centred clouds in the principal axes of the second, the first one turned."""
        problem, arcs = self.problem, self.arcs
        Z = np.zeros(problem.dimension)
        moment(problem.X, problem.W, arcs.i, arcs.j, arcs.flow, Z)
        X, Y = problem.length * problem.X, problem.length * problem.Y
        U, _, Vt = np.linalg.svd(Z.reshape(X.shape[1], Y.shape[1]), full_matrices=False)
        return X @ (U @ Vt), Y

    def _repr_html_(self) -> str:
        """Return value, bounds, gap and both clouds in one frame for a notebook."""
        from ..display.notebook import judged_card
        from ..display.page import clouds_drawing

        n, m = self.problem.shape
        run = f"{self.method}; {self.n_ot:,} transport problems, {self.seconds:.3g} s"
        title = f"Gromov-Wasserstein, {n:,} × {m:,} points"
        return judged_card(self, title, [run], clouds_drawing(self))

    def plot(self, ax: Axes | None = None) -> Figure | SubFigure:
        """Draw both clouds in one frame, with lines between coupled points; returns the figure."""
        from ..display.page import plot_clouds

        return plot_clouds(self, ax)
