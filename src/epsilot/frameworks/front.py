"""Declare the loss functions of every framework: signatures, validation and documentation.

An adapter (:mod:`.torch`, :mod:`.jax`) fills in the abstract methods: it checks arrays of its
framework, hands them to the solver as NumPy arrays, and registers the gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._types import Array
from ..arguments import check_count, check_positive
from ..errors import InvalidProblem
from ..wording import shown
from .losses import CloudLoss, Loss, MatrixLoss, SelfLoss, partners

#: Array type of a framework.
T = TypeVar("T")
#: Finds partners in stacked clouds: partners (k, n) and gaps (k,).
Match = Callable[[Array, Array, Array | None, Array | None], tuple[Array, Array]]


# -- shapes --------------------------------------------------------------------------------------

Shape = tuple[int, ...]


class Stacking(NamedTuple):
    """The shapes of stacked problems: leading axes, and the axes of each argument."""

    lead: Shape
    costs: tuple[Shape, ...]  # of the points or costs, without the leading axes
    weights: tuple[Shape | None, ...]  # of a and b; None: not given

    @property
    def parts(self) -> tuple[Shape | None, ...]:
        """Shapes of all arguments, without the leading axes."""
        return self.costs + self.weights

    @property
    def size(self) -> int:
        """Number of problems."""
        return prod(self.lead)


def stack_clouds(x: Shape, y: Shape, a: Shape | None, b: Shape | None) -> Stacking:
    """Return the stacking of clouds (..., n, d) and (..., m, d); reject shapes that do not fit."""
    for name, shape in (("x", x), ("y", y)):
        if len(shape) < 2 or 0 in shape:
            raise InvalidProblem(
                f"{name} has shape {tuple(shape)}; it must be (..., n, d): n >= 1 points of d >= 1 "
                "numbers (points on a line: x[:, None])."
            )
    if x[-1] != y[-1]:
        raise InvalidProblem(
            f"x has {x[-1]} coordinates per point and y {y[-1]}; both must live in one space."
        )
    return _stacked({"x": (x, 2), "y": (y, 2)}, (x[-2], y[-2]), a, b)


def stack_cloud(x: Shape, a: Shape | None) -> Stacking:
    """Return the stacking of clouds (..., n, d), each transported to itself."""
    both = stack_clouds(x, x, a, None)
    return Stacking(both.lead, both.costs[:1], both.weights[:1])


def stack_costs(M: Shape, a: Shape | None, b: Shape | None) -> Stacking:
    """Return the stacking of costs (..., n, m); reject shapes that do not fit."""
    if len(M) < 2 or 0 in M:
        raise InvalidProblem(f"M has shape {tuple(M)}; it must be (..., n, m), a cost or many.")
    return _stacked({"M": (M, 2)}, (M[-2], M[-1]), a, b)


def _stacked(
    costs: dict[str, tuple[Shape, int]], sizes: Shape, a: Shape | None, b: Shape | None
) -> Stacking:
    """Return the stacking of arguments whose leading axes broadcast."""
    for name, w, size in (("a", a, sizes[0]), ("b", b, sizes[1])):
        if w is not None and (len(w) < 1 or w[-1] != size):
            raise InvalidProblem(
                f"{name} has shape {tuple(w)}; it must be (..., {size}), one weight for each "
                f"{'source' if name == 'a' else 'target'}."
            )
    given = costs | {name: (w, 1) for name, w in (("a", a), ("b", b)) if w is not None}
    leads = {name: tuple(shape[:-depth]) for name, (shape, depth) in given.items()}
    try:
        lead = np.broadcast_shapes(*leads.values())
    except ValueError:
        received = ", ".join(f"{name} {axes}" for name, axes in leads.items())
        raise InvalidProblem(
            f"the axes of many problems are {received}; they must broadcast against each other."
        ) from None
    return Stacking(
        lead,
        tuple(tuple(shape[-depth:]) for shape, depth in costs.values()),
        tuple(None if w is None else tuple(w[-1:]) for w in (a, b)),
    )


# -- functions -----------------------------------------------------------------------------------


class Info(NamedTuple, Generic[T]):
    """Certificate of each value: it exceeds the optimum by at most ``gap``."""

    gap: T
    potentials: tuple[T, T]  # dual feasible, in units of the cost

    def __repr__(self) -> str:
        """Return gaps, and the shapes of the potentials: these have a number for each point."""
        f, g = map(_shape, self.potentials)
        return f"Info(gap={self.gap}, potentials of shapes {f} and {g})"


class Front(ABC, Generic[T]):
    """The loss functions on the arrays of one framework."""

    # -- adapters implement ------------------------------------------------------------------

    @abstractmethod
    def _checked(self, given: Any, name: str) -> T:
        """Return an array of floating point numbers; reject other arguments."""

    @abstractmethod
    def _solve(
        self, loss: Loss, stacking: Stacking, arrays: Sequence[T | None]
    ) -> tuple[T, T, T, T]:
        """Return differentiable values, then gaps and potentials, each with the lead axes."""

    @abstractmethod
    def _partners(
        self, find: Match, stacking: Stacking, arrays: Sequence[T | None], *, return_info: bool
    ) -> T | tuple[T, T]:
        """Return partners, or (partners, gaps), with the lead axes; neither has a gradient."""

    @abstractmethod
    def _uniform(self, other: T, n: int) -> T:
        """Return n uniform weights with the total of other weights."""

    # -- public ------------------------------------------------------------------------------

    def transport_cost(
        self,
        x: T,
        y: T,
        a: T | None = None,
        b: T | None = None,
        *,
        metric: str = "sqeuclidean",
        rtol: float | None = None,
        eps: float | None = None,
        reg: float | None = None,
        tol: float | None = None,
        mass: float | None = None,
        unbalanced: float | tuple[Any, Any] | None = None,
        unbalanced_type: str = "kl",
        n_threads: int | None = None,
        return_info: bool = False,
    ) -> T | tuple[T, Info[T]]:
        r"""Return the optimal transport cost between point clouds, differentiable in all four.

        .. math:: \min_X \sum_{ij} X_{ij} c(x_i, y_j) \quad X 1 = a,\; X^\top 1 = b,\; X \ge 0

        With the plan X and the potentials f, g of the solution, the gradients are
        :math:`\sum_j X_{ij} \nabla c(x_i, y_j)` in x, the same in y, and f and g in the weights
        (with a KL penalty λ: :math:`λ (1 - e^{-f/λ})` and the same for g). They are
        ε-subgradients, with ε the certified gap (:meth:`epsilot.Result.gradients`).

        Parameters
        ----------
        x, y : (..., n, d), (..., m, d) arrays
            Points. Leading axes hold many problems, and broadcast.
        a, b : (..., n), (..., m) arrays, optional
            Weights, of equal totals in a balanced problem. If None, uniform with the total of the
            others.
        metric : str
            A name of ``epsilot.metrics.LOSS_METRICS``, "sqeuclidean" by default.
            Where a metric has a kink, such as between coincident points, a pair has slope 0.
        rtol, eps : float, optional
            The gap to reach, relative to the value (default: 1e-6) or absolute.
        reg : float, optional
            Return the *entropic* value, min <C, X> - reg H(X), instead. It is smooth: its
            gradients are those of a plan within :math:`\sqrt{2\,\mathrm{gap}/\mathrm{reg}}` of
            the optimal one (in l1, for weights of total 1).
        tol : float, optional
            With ``reg``: the gap to reach, by default 1e-9 of the largest cost, or of reg.
        mass : float, optional
            Partial transport: move this much of a and b, as in :func:`epsilot.solve`.
        unbalanced, unbalanced_type : optional
            Unbalanced transport: marginal penalties, as in :func:`epsilot.solve`. The totals of a
            and b may then differ, as they may with ``mass``.
        n_threads : int, optional
            Threads to use; one per core by default.
        return_info : bool
            Return (value, ``Info``), as ``jax.grad(..., has_aux=True)`` expects it.

        Returns
        -------
        value : (...) array
            Cost of a feasible plan: at most ``gap`` above the optimum.

        Examples
        --------
        >>> import torch, epsilot.torch
        >>> x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [3.0]])
        >>> epsilot.torch.transport_cost(x, y)
        tensor(4.)
        """
        loss = CloudLoss.of_call(locals())
        x, y, a, b = self._clouds(x, y, a, b)
        answer = self._between(loss, x, y, a, b)
        return answer if return_info else answer[0]

    def transport_cost_matrix(
        self,
        M: T,
        a: T | None = None,
        b: T | None = None,
        *,
        rtol: float | None = None,
        eps: float | None = None,
        reg: float | None = None,
        tol: float | None = None,
        mass: float | None = None,
        unbalanced: float | tuple[Any, Any] | None = None,
        unbalanced_type: str = "kl",
        n_threads: int | None = None,
        return_info: bool = False,
    ) -> T | tuple[T, Info[T]]:
        """Return the optimal transport cost of a cost matrix, differentiable in costs and weights.

        The gradient in M is the plan, that in the weights the potentials.

        Parameters
        ----------
        M : (..., n, m) array
            Costs. Leading axes hold many problems, and broadcast.
        a, b : (..., n), (..., m) arrays, optional
            Weights, as in :func:`transport_cost`.
        rtol, eps, reg, tol, mass, unbalanced, unbalanced_type, n_threads, return_info
            As in :func:`transport_cost`.

        Examples
        --------
        >>> import torch, epsilot.torch
        >>> M = torch.tensor([[0.0, 1.0], [1.0, 3.0]], requires_grad=True)
        >>> epsilot.torch.transport_cost_matrix(M).backward()
        >>> M.grad  # the plan
        tensor([[0.0000, 0.5000],
                [0.5000, 0.0000]])
        """
        loss = MatrixLoss.of_call(locals())
        M = self._checked(M, "M")
        a, b = self._weights(a, "a"), self._weights(b, "b")
        answer = self._answer(loss, stack_costs(_shape(M), _shape(a), _shape(b)), (M, a, b))
        return answer if return_info else answer[0]

    def divergence(
        self,
        x: T,
        y: T,
        reg: float,
        a: T | None = None,
        b: T | None = None,
        *,
        metric: str = "sqeuclidean",
        tol: float | None = None,
        unbalanced: float | tuple[Any, Any] | None = None,
        unbalanced_type: str = "kl",
        n_threads: int | None = None,
        return_info: bool = False,
        **others: object,
    ) -> T | tuple[T, Info[T]]:
        r"""Return the Sinkhorn divergence: entropic transport without its bias.

        .. math::
            S(x, y) = \mathrm{OT}(x, y) - \tfrac12 \mathrm{OT}(x, x) - \tfrac12 \mathrm{OT}(y, y)

        where OT is ``transport_cost(..., reg=reg)``; whether the entropy is taken of X or relative
        to a ⊗ b makes no difference to S. For squared distances it is smooth, convex in each
        weight, and zero if and only if the measures are equal (Feydy et al. 2019). With
        ``unbalanced`` it is that of unbalanced transport, where the entropy is relative to a ⊗ b
        (Séjourné et al. 2019).

        Parameters
        ----------
        x, y, a, b, metric, tol, unbalanced, unbalanced_type, n_threads
            As in :func:`transport_cost`. Both penalties must be equal.
        reg : float
            Regularisation, in units of the cost.
        return_info : bool
            Return (value, ``Info``). Its gap bounds the error of S to either side; its
            potentials are the slopes of S in the weights, up to constants.

        Examples
        --------
        >>> import torch, epsilot.torch
        >>> x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        >>> round(epsilot.torch.divergence(x, x + 1, reg=0.1).item(), 6)
        1.0
        """
        _reject("divergence", others, "use transport_cost, which takes mass, rtol and eps")
        keywords = locals() | {"reg": check_positive("reg", reg)}
        loss = CloudLoss.of_call(keywords)
        if isinstance(loss.unbalanced, tuple) and (
            len(set(loss.unbalanced)) > 1 or isinstance(loss.unbalanced[0], tuple)
        ):
            raise InvalidProblem(
                f"unbalanced is {shown(loss.unbalanced)}; a divergence needs equal penalties for "
                "both clouds (pass one number)."
            )
        if not loss.is_balanced:
            loss = replace(loss, is_relative=True)
        own = SelfLoss.of_call(keywords | {"is_relative": loss.is_relative})
        x, y, a, b = self._clouds(x, y, a, b)
        stack_clouds(_shape(x), _shape(y), _shape(a), _shape(b))
        if a is None and b is not None:
            a = self._uniform(b, _shape(x)[-2])
        elif b is None and a is not None:
            b = self._uniform(a, _shape(y)[-2])
        cost, info = self._between(loss, x, y, a, b)
        of_x, info_x = self._answer(own, stack_cloud(_shape(x), _shape(a)), (x, a))
        of_y, info_y = self._answer(own, stack_cloud(_shape(y), _shape(b)), (y, b))
        value: T = cost - (of_x + of_y) / 2
        if not return_info:
            return value
        f, g = info.potentials
        (f_x, g_x), (f_y, g_y) = info_x.potentials, info_y.potentials
        gap = info.gap + (info_x.gap + info_y.gap) / 2
        return value, Info(gap, (f - (f_x + g_x) / 2, g - (f_y + g_y) / 2))

    def match(
        self,
        x: T,
        y: T,
        a: T | None = None,
        b: T | None = None,
        *,
        metric: str = "sqeuclidean",
        seed: int = 0,
        n_threads: int | None = None,
        return_info: bool = False,
        **others: object,
    ) -> T | tuple[T, T]:
        """Return a partner in y for each point of x, by an optimal plan: ``y[match(x, y)]``.

        For uniform weights on as many points this is the assignment of least cost, a permutation:
        the coupling of a minibatch in flow matching (Tong et al. 2024). Otherwise partners are
        drawn from the rows of the plan, so that pairs follow the plan if the points of x have
        weights a. Partners are indices and have no gradient.

        Parameters
        ----------
        x, y : (..., n, d), (..., m, d) arrays
            Points. Leading axes hold many problems, and broadcast.
        a, b : (..., n), (..., m) arrays, optional
            Weights; uniform if None.
        metric, n_threads
            As in :func:`transport_cost`.
        seed : int
            Seed of the draws.
        return_info : bool
            Return (partners, gap): the plan's cost exceeds the optimum by at most ``gap``.

        Returns
        -------
        partners : (..., n) array of integers

        Examples
        --------
        >>> import torch, epsilot.torch
        >>> x = torch.tensor([[0.0], [1.0], [2.0]])
        >>> epsilot.torch.match(x, x.flip(0)).tolist()
        [2, 1, 0]
        """
        remedy = "some points have no partner then; use the plan of epsilot.solve_sample"
        _reject("match", others, remedy)
        seed = check_count("seed", seed, 0)
        x, y, a, b = self._clouds(x, y, a, b)
        stacking = stack_clouds(_shape(x), _shape(y), _shape(a), _shape(b))
        find = partial(partners, metric=metric, seed=seed, n_threads=n_threads)
        return self._partners(find, stacking, (x, y, a, b), return_info=return_info)

    # -- shared steps ------------------------------------------------------------------------

    def _clouds(self, x: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
        """Return checked points and weights."""
        x, y = self._checked(x, "x"), self._checked(y, "y")
        return x, y, self._weights(a, "a"), self._weights(b, "b")

    def _weights(self, given: Any, name: str) -> T | None:
        """Return checked weights, if there are any."""
        return None if given is None else self._checked(given, name)

    def _between(self, loss: CloudLoss, x: Any, y: Any, a: Any, b: Any) -> tuple[Any, Info[Any]]:
        """Return values and certificates of problems between clouds."""
        stacking = stack_clouds(_shape(x), _shape(y), _shape(a), _shape(b))
        return self._answer(loss, stacking, (x, y, a, b))

    def _answer(
        self, loss: Loss, stacking: Stacking, arrays: Sequence[Any]
    ) -> tuple[Any, Info[Any]]:
        """Return values and certificates of problems."""
        value, gap, f, g = self._solve(loss, stacking, arrays)
        return value, Info(gap, (f, g))


def _shape(array: Any) -> Any:
    """Return the shape of an array, or None."""
    return None if array is None else tuple(array.shape)


#: Keywords of other losses, whose refusal names a remedy.
LOSS_KEYWORDS = ("mass", "unbalanced", "unbalanced_type", "reg", "tol", "rtol", "eps")


def _reject(function: str, others: dict[str, object], remedy: str) -> None:
    """Reject keywords that a function does not take; name the remedy for those of other losses."""
    for name in others:
        if name in LOSS_KEYWORDS:
            raise InvalidProblem(
                f"{name} was given to {function}, which takes no {name}; {remedy}."
            )
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
