"""Results of barycentres: the histogram or the points, their plans, and proved bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .._types import Potentials, Vector
from ..display.results import CertifiedResult
from ..display.text import compile_note
from ..problems.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@dataclass(frozen=True, kw_only=True)
class BarycenterResult(CertifiedResult):
    r"""A histogram b with plans to it from all others, and a certified optimality gap.

    Attributes
    ----------
    barycenter : (m,) array, or of the shape of the images
        b, of the total that the histograms have.
    plans : tuple of Plan
        Operators X_k with X_k 1 = a_k and X_kᵀ 1 = b.
    potentials : tuple of (f_k, g_k)
        f_k ⊕ g_k <= M_k and Σ w_k g_k = 0 (with ``reg``, any potentials are feasible).
    value : float
        Σ w_k <M_k, X_k>, or the entropic objective with ``reg``.
    lower_bound : float
        No barycentre has a smaller value.
    values : (k,) array
        <M_k, X_k> of each plan, or its entropic objective.
    weights : (k,) array
        w, of total 1.
    marginal_error : float
        Largest l1 distance from the marginals before plans were rounded to them.
    converged : bool
        Whether the gap is at most ``target``.
    status : Status
        How the run ended; ``str(status)`` is a sentence.
    method, choice : str
        The method that ran; why "auto" chose it (None if the caller did).
    reg : float
        The regularisation at the end; 0 for exact methods.
    is_entropic : bool
        Whether ``value`` has an entropy, because ``reg`` was given.
    seed, options, version
        Seed, options of the method, and version of the package.
    n_iter : int
        Steps.
    work : Work
        ``work.operations``: arithmetic operations.
    seconds, compile_seconds : float
        Time to solve; time to compile kernels during the call, which is not part of it.
    history : list of Record
        The bounds at each evaluation.
    target : float
        The gap that was asked for.
    quantity : str
        The name of ``value``.
    """

    barycenter: Vector
    plans: tuple[Plan, ...] = field(repr=False)
    potentials: tuple[Potentials, ...] = field(repr=False)
    values: Vector
    weights: Vector
    reg: float
    is_entropic: bool
    options: dict[str, object]
    quantity: str = field(default="barycentre's objective", repr=False)

    def __repr__(self) -> str:
        mark = "certified" if self.converged else "NOT at the target"
        shape = " x ".join(map(str, self.barycenter.shape))
        return (
            f"<epsilot.BarycenterResult of {len(self.plans)} histograms on {shape}, "
            f"{self.method}: {mark}\n"
            f"  value {self.value:.10g}, lower bound {self.lower_bound:.10g}, "
            f"gap {self.gap:.3g} (target {self.target:.3g})\n"
            f"  {self.status}; {self.n_iter} steps, {self.work.operations:.3g} operations, "
            f"{self.seconds:.3g} s{compile_note(self.compile_seconds)}>"
        )

    def _repr_html_(self) -> str:
        """Return value, bounds, gap and a picture of the barycentre for a notebook."""
        from ..display.notebook import judged_card, masses_picture

        shape = " × ".join(map(str, self.barycenter.shape))
        title = f"Barycentre of {len(self.plans)} histograms on {shape}"
        run = f"{self.method}; {self.seconds:.3g} s{compile_note(self.compile_seconds)}"
        return judged_card(self, title, [run], masses_picture(self.barycenter))

    def plot(self, ax: Axes | None = None) -> Figure | SubFigure:
        """Draw the barycentre: bars of a histogram, pixels of an image; returns the figure.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> M = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
        >>> figure = epsilot.barycenter(np.eye(9)[[1, 5]], M).plot()
        """
        from ..display.plan_plots import plot_masses

        title = f"Barycentre of {len(self.plans)} histograms: value {self.value:.6g}"
        return plot_masses(self.barycenter, "mass", title, ax)
