"""The result of a solve: a feasible plan, certified bounds and the history of the run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from scipy import sparse

from .._types import Matrix, Potentials, Vector
from ..display.results import TransportResult
from ..display.text import (
    accuracy_note,
    compile_note,
    cost_words,
    counted,
    distance_note,
)
from ..errors import InvalidProblem
from ..problems.objective import Slopes
from ..problems.plan import Plan
from .maps import MappedPoints, mapped, potential
from .saved_result import read_result, save_result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import ArrayLike

    from ..geometry import Geometry


class Gradients(NamedTuple):
    """Slopes of the optimal value in the weights and in the cost (:meth:`Result.gradients`)."""

    a: Vector
    b: Vector
    M: Plan


@dataclass(frozen=True, kw_only=True)
class Result(TransportResult):
    """A feasible plan with a certified optimality gap.

    ``value - lower_bound = gap`` is proved for this run. ``plan`` is built on first access.

    Attributes
    ----------
    plan_operator : Plan
        The plan as an operator, which stores O(n + m) numbers if the method allows.
    potentials : (f, g)
        Dual potentials in units of M: f_i + g_j <= M_ij (with ``reg``: the entropic potentials).
    value : float
        The objective at the plan, an upper bound: <M, X>, or <M, X> - reg H(X) with ``reg``.
    value_linear : float
        <M, X>.
    lower_bound : float
        No plan has a smaller value.
    marginal_error : float
        l1 distance from the marginals before the plan was rounded to them.
    converged : bool
        Whether the gap is at most ``target``.
    status : Status
        How the run ended; ``str(status)`` is a sentence.
    method, choice : str
        The method that ran; why "auto" chose it (None if the caller did).
    reg : float
        The regularisation at the end; 0 for exact methods.
    seed, options, version
        Seed, options of the method, and version of the package.
    n_iter : int
        Epochs.
    work : Work
        ``work.operations``: arithmetic operations; ``work.certificate``: those of certificates.
    seconds, compile_seconds : float
        Time to solve; time to compile kernels during the call, which is not part of it.
    history : list of Record
        The bounds at each evaluation.
    target : float
        The gap that was asked for.
    is_entropic : bool
        Whether ``value`` has an entropy, because ``reg`` was given.
    quantity : str
        The name of ``value``.
    problem : Problem
        The validated problem, in internal units.
    slopes : callable or None
        Turns potentials into derivatives in the weights, for :meth:`gradients`.
    mass_price : float or None
        µ of a partial problem of mass s: OPT(s') >= lower_bound + µ (s' - s) for every mass s'.
    asked : dict
        The keywords of the call, as they are written in Python.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> result = epsilot.solve(M, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    >>> result.value, round(result.lower_bound, 12), result.status.name
    (1.0, 1.0, 'CERTIFIED')
    >>> result.plan.sum(axis=0)
    array([0. , 0.5, 0.5])
    """

    potentials: Potentials = field(repr=False)
    slopes: Slopes | None = field(default=None, repr=False)  # in the weights, from potentials
    mass_price: float | None = None  # µ: slope of the optimum in ``mass``

    @classmethod
    def of_fields(cls, **fields: Any) -> Self:
        """Return a result, given all fields; the constructor takes ten times as long (2 µs)."""
        result = object.__new__(cls)
        vars(result).update(fields)
        return result

    @cached_property
    def plan(self) -> Matrix:
        """The plan as an (n, m) array, if it fits in memory."""
        return self.plan_operator.toarray()

    @cached_property
    def plan_sparse(self) -> sparse.csr_array:
        """The positive entries of the plan as an (n, m) SciPy CSR array.

        Plans of exact methods have at most n + m - 1 entries. All entries of entropic plans may be
        positive: ``plan_operator.tosparse(threshold)`` leaves out the small ones.
        """
        return self.plan_operator.tosparse()

    def __repr__(self) -> str:
        n, m = self.plan_operator.shape
        mark = "certified" if self.converged else "NOT at the target"
        cost = cost_words(self.problem)
        distance = distance_note(self.problem, self.quantity, self.value)
        accuracy = accuracy_note(self.quantity, self.value, self.lower_bound)
        return (
            f"<epsilot.Result {n} x {m}, {'' if cost is None else cost + ', '}{self.method}: "
            f"{mark}\n"
            f"  value {self.value:.10g}{'' if distance is None else f' ({distance})'}, "
            f"lower bound {self.lower_bound:.10g}, "
            f"gap {self.gap:.3g} (target {self.target:.3g}{accuracy and '; ' + accuracy})\n"
            f"  {self.status}; {counted(self.n_iter, 'epoch')}, "
            f"{self.work.operations:.3g} operations, {self.seconds:.3g} s"
            f"{compile_note(self.compile_seconds)}>"
        )

    def map(self, X_new: ArrayLike | None = None) -> MappedPoints:
        r"""Return where points go: the sources, or new points.

        A source goes to the mean of its destinations under the plan (the barycentric projection).
        A new point x goes to the target of least :math:`c(x, y_j) - g_j`, or with ``reg`` to the
        mean of targets by :math:`e^{(g_j - c(x, y_j)) / reg}`. For squared distances that is
        :math:`x - \nabla f(x) / 2`, with the potential extended by :meth:`potential`.

        Parameters
        ----------
        X_new : (k, d) array-like, optional
            Points; by default the sources. Points that equal a source are treated as this one.

        Returns
        -------
        MappedPoints
            ``points``, ``is_seen`` (whether a row is a source), and ``error``: the root mean square
            distance, over the mass of the plan, between where the plan sends the sources and where
            the map does, by the rule of the new points if there are any.

        Examples
        --------
        >>> import epsilot
        >>> result = epsilot.solve_sample([[0.0], [1.0]], [[5.0], [7.0]])
        >>> result.map([[0.0], [2.0]])
        MappedPoints(points=array([[5.],
               [7.]]), is_seen=array([ True, False]), error=0.0)
        """
        return mapped(self, X_new)

    def potential(self, X_new: ArrayLike) -> Vector:
        r"""Return the row potential at new points, by its c-transform.

        .. math:: f(x) = \min_j c(x, y_j) - g_j

        It is dual feasible at every point of space: :math:`f(x) + g_j \le c(x, y_j)`. With ``reg``
        it is :math:`-reg \log \sum_j e^{(g_j - c(x, y_j)) / reg}`, to which a source of weight a
        adds reg log a (with ``reg_type="kl"``: the terms have the factors b_j, and nothing is
        added). For a partial problem µ is taken off, and f(x) is at most 0.

        Parameters
        ----------
        X_new : (k, d) array-like
            Points.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> result = epsilot.solve_sample([[0.0], [1.0]], [[1.0], [3.0]])
        >>> f, g = result.potentials
        >>> f
        array([ 0., -1.])
        >>> result.potential([[0.0], [0.5], [1.0]])
        array([ 0.  , -0.75, -1.  ])
        """
        return potential(self, X_new)

    def gradients(self) -> Gradients:
        r"""Return certified subgradients of the optimal value in a, b and M.

        The potentials are dual feasible for all weights, and the plan is feasible for all costs.
        Let OPT be the optimal value (of the entropic objective with ``reg``). For all weights
        a', b' with the totals of a and b, and for all costs M',

        .. math::
            \mathrm{OPT}(M, a', b') &\ge \mathrm{value}
            + \langle \partial a, a' - a\rangle + \langle \partial b, b' - b\rangle
            - \mathrm{gap} \\
            \mathrm{OPT}(M', a, b) &\le \mathrm{value} + \langle \partial M, M' - M\rangle

        and ``value`` is at most OPT + gap. These are ε-subgradients in the weights and an
        ε-supergradient in the cost, where ε is the certified gap. The slopes in the weights are the
        potentials, centred to mean 0, since constants do not matter while totals are fixed. If the
        common total of a and b changes, use ``potentials`` themselves. Partial and unbalanced
        problems have free weights: their slopes are the potentials (λ (1 - exp(-f/λ)) with a KL
        penalty λ), not centred, and the inequalities hold for all a' and b'.

        Returns
        -------
        a, b : (n,), (m,) arrays
            Slopes in the weights. With ``reg`` the slope at a weight of 0 is infinite: the mean
            slope stands for it, and the inequality holds for weights that stay 0.
        M : Plan
            ``plan_operator``.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> M = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
        >>> slopes = epsilot.exact(M, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]).gradients()
        >>> slopes.a  # mass nearer to its target costs less
        array([ 1.,  0., -1.])
        """
        if self.slopes is None:
            raise InvalidProblem(
                f"the value is the {self.quantity}, whose slopes in the weights are not its "
                "potentials, or the result was read from a file; solve another kind of problem, or "
                "solve it again."
            )
        return Gradients(*self.slopes(self.potentials), self.plan_operator)

    def _repr_html_(self) -> str:
        """Return value, bounds, gap and a thumbnail of the plan for a notebook."""
        from ..display.notebook import result_card

        return result_card(self)

    def plot(
        self, ax: Axes | None = None, *, points: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Figure | SubFigure:
        """Draw where mass goes; returns the figure, which a notebook shows.

        Points in the plane are drawn with lines between them, images with arrows of the mean
        displacement, points on a line as two histograms, and a plan without points as a matrix.
        Clouds in three and more dimensions are projected on the directions of largest variance.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; a new figure if None.
        points : (n, d), (m, d) array-like, optional
            Positions of sources and targets, if M does not hold them.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> figure = epsilot.solve_sample(X, X + 1.0).plot()
        >>> figure.savefig("plan.png")
        """
        from ..display.page import coordinates
        from ..display.plan_plots import plot_plan
        from ..display.plan_samples import MovedMass

        title = f"{self.quantity[:1].upper()}{self.quantity[1:]} {self.value:.6g}"
        X, Y = coordinates(self, points)
        return plot_plan(MovedMass.of(self), X, Y, title, ax)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        points: tuple[ArrayLike, ArrayLike] | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML page: the certificate, the history and pictures of the plan.

        The file is self-contained, without scripts, and written atomically.

        Parameters
        ----------
        path
            A name that ends in ``.html``.
        points : (n, d), (m, d) array-like, optional
            Positions of sources and targets, if M does not hold them. Pixels in row-major order
            are drawn as an image, others as points.
        command
            The command that made the result; by default the call in Python.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> x = np.linspace(0, 1, 20)
        >>> epsilot.solve_sample(x, x**2).report("out.html")
        """
        from ..display.page import write_page

        write_page(self, path, points, command)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan, the potentials and the bounds to an ``.npz`` file, atomically.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> epsilot.solve(np.eye(3)).save("result.npz")

        ``epsilot certify --result result.npz --cost M.npy`` proves the bounds again.
        """
        save_result(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        M: ArrayLike | Geometry | None = None,
        a: ArrayLike | None = None,
        b: ArrayLike | None = None,
        **keywords: Any,
    ) -> Result:
        """Read a result that :meth:`save`, or ``epsilot solve --out``, has written.

        A file holds everything but the costs. Pass the problem as it was solved for what needs
        costs: plans of methods that store potentials only (``plan``, ``plan_operator``), ``map``,
        ``potential`` and pictures of points.

        Parameters
        ----------
        path
            The file.
        M, a, b, **keywords
            The cost (an array or a geometry such as :class:`epsilot.PointCloud`), the weights, and
            the keywords that describe the problem (``normalize``, ``mass``, ``unbalanced``, ...).
            A problem other than the one that was solved is rejected.

        Examples
        --------
        >>> import numpy as np, epsilot
        >>> epsilot.solve(np.eye(3)).save("result.npz")
        >>> result = epsilot.Result.load("result.npz")
        >>> result.value, result.plan_sparse.nnz
        (0.0, 3)
        """
        fields, digest = read_result(path, M, a, b, keywords)
        result = cls(**fields)
        vars(result)["problem_hash"] = digest  # a cached property
        return result
