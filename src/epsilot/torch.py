"""Transport costs that PyTorch can differentiate, each value and gradient with its certificate.

Problems are solved on the CPU in float64, by the solvers of :func:`epsilot.solve_batch`; tensors of
other types and on other devices are copied there and back. Gradients come from the solution
(no iteration is unrolled), once: they cannot be differentiated again.

>>> import torch, epsilot.torch
>>> x = torch.tensor([[0.0], [1.0]], requires_grad=True)
>>> cost = epsilot.torch.transport_cost(x, torch.tensor([[2.0], [3.0]]))
>>> cost.backward()
>>> cost.item(), x.grad.ravel().tolist()
(4.0, [-2.0, -2.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ._types import Array, Passed
from .applications.extras import MissingExtra
from .applications.losses.matching import partners
from .applications.losses.shapes import Stacking, stack_cloud, stack_clouds, stack_costs
from .applications.losses.values import CloudLoss, MatrixLoss, Outcome, SelfLoss
from .errors import InvalidProblem

try:
    import torch
    from torch import Tensor
    from torch.autograd.function import Function, once_differentiable
except ImportError as error:
    raise MissingExtra("epsilot.torch", "PyTorch", "torch") from error

__all__ = ["Info", "divergence", "match", "transport_cost", "transport_cost_matrix"]

#: Solves stacks of problems: arrays, and of which of them the slopes are wanted.
Solve = Callable[[Sequence[Array | None], Sequence[bool]], Outcome]


class Info(NamedTuple):
    """What is proved of each value: it exceeds the optimum by at most ``gap``."""

    gap: Tensor
    potentials: tuple[Tensor, Tensor]  # dual feasible, in units of the cost


def transport_cost(
    x: Tensor,
    y: Tensor,
    a: Tensor | None = None,
    b: Tensor | None = None,
    *,
    metric: str = "sqeuclidean",
    rtol: float | None = None,
    eps: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    r"""Return the optimal transport cost between weighted point clouds, differentiable in all four.

    .. math:: \min_X \sum_{ij} X_{ij} c(x_i, y_j) \quad X 1 = a,\; X^\top 1 = b,\; X \ge 0

    With the plan X and the potentials f, g of the solution, the gradients are
    :math:`\sum_j X_{ij} \nabla c(x_i, y_j)` in x, likewise in y, and f and g in the weights. They
    are ε-subgradients, with ε the certified gap (:meth:`epsilot.Result.gradients`).

    Parameters
    ----------
    x, y : (..., n, d), (..., m, d) tensors
        Points; further axes are those of many problems, and broadcast.
    a, b : (..., n), (..., m) tensors, optional
        Weights of equal totals; uniform if None.
    metric : {"sqeuclidean", "euclidean", "cityblock", "cosine"}
        Where a metric has a kink, such as between coincident points, a pair has slope 0.
    rtol, eps : float, optional
        The gap to reach, relative to the value (default: 1e-6) or absolute.
    reg : float, optional
        Return the *entropic* value, min <C, X> - reg H(X), instead. It is smooth: its gradients
        are those of the plan that is within :math:`\sqrt{2\,\mathrm{gap}/\mathrm{reg}}` of the
        optimal one (in l1, for weights of total 1).
    tol : float, optional
        With ``reg``: the gap to reach, by default 1e-9 of the largest cost, or of reg.
    n_threads : int, optional
        Threads to use; one per core by default.
    return_info : bool
        Return (value, :class:`Info`).

    Returns
    -------
    value : (...) tensor
        Cost of a feasible plan: at most ``gap`` above the optimum.
    """
    loss = CloudLoss(metric=metric, rtol=rtol, eps=eps, reg=reg, tol=tol, n_threads=n_threads)
    answer = _between_clouds(loss, x, y, a, b)
    return answer if return_info else answer[0]


def transport_cost_matrix(
    M: Tensor,
    a: Tensor | None = None,
    b: Tensor | None = None,
    *,
    rtol: float | None = None,
    eps: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    """Return the optimal transport cost of a cost matrix, differentiable in costs and weights.

    The gradient in M is the plan, that in the weights the potentials.

    Parameters
    ----------
    M : (..., n, m) tensor
        Costs; further axes are those of many problems, and broadcast.
    a, b : (..., n), (..., m) tensors, optional
        Weights of equal totals; uniform if None.
    rtol, eps, reg, tol, n_threads, return_info
        As in :func:`transport_cost`.
    """
    M = _as_tensor(M, "M")
    loss = MatrixLoss(rtol=rtol, eps=eps, reg=reg, tol=tol, n_threads=n_threads)
    answer = _answer(loss, stack_costs(M.shape, _shape(a), _shape(b)), (M, a, b))
    return answer if return_info else answer[0]


def divergence(
    x: Tensor,
    y: Tensor,
    reg: float,
    a: Tensor | None = None,
    b: Tensor | None = None,
    *,
    metric: str = "sqeuclidean",
    tol: float | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Info]:
    r"""Return the Sinkhorn divergence: entropic transport without its bias.

    .. math:: S(x, y) = \mathrm{OT}(x, y) - \tfrac12 \mathrm{OT}(x, x) - \tfrac12 \mathrm{OT}(y, y)

    where OT is ``transport_cost(..., reg=reg)``; whether the entropy is taken of X or relative to
    a ⊗ b makes no difference to S. For squared distances it is smooth, convex in each weight,
    and zero if and only if the measures are equal (Feydy et al. 2019).

    Parameters
    ----------
    x, y, a, b, metric, tol, n_threads
        As in :func:`transport_cost`.
    reg : float
        Regularisation, in units of the cost.
    return_info : bool
        Return (value, :class:`Info`), whose gap bounds the error of S to either side and whose
        potentials are those of S: what its slope in the weights is, up to constants.
    """
    x, y = _as_tensor(x, "x"), _as_tensor(y, "y")
    a, b = _spread_over(a, b, x), _spread_over(b, a, y)
    loss = CloudLoss(metric=metric, reg=reg, tol=tol, n_threads=n_threads)
    own = SelfLoss(metric=metric, reg=reg, tol=tol, n_threads=n_threads)
    cost, info = _between_clouds(loss, x, y, a, b)
    of_x, info_x = _answer(own, stack_cloud(x.shape, _shape(a)), (x, a))
    of_y, info_y = _answer(own, stack_cloud(y.shape, _shape(b)), (y, b))
    value = cost - (of_x + of_y) / 2
    if not return_info:
        return value
    f, g = info.potentials
    (f_x, g_x), (f_y, g_y) = info_x.potentials, info_y.potentials
    gap = info.gap + (info_x.gap + info_y.gap) / 2
    return value, Info(gap, (f - (f_x + g_x) / 2, g - (f_y + g_y) / 2))


def match(
    x: Tensor,
    y: Tensor,
    a: Tensor | None = None,
    b: Tensor | None = None,
    *,
    metric: str = "sqeuclidean",
    seed: int = 0,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return a partner in y for each point of x, by an optimal plan: ``y[match(x, y)]``.

    For uniform weights on as many points this is the assignment of least cost, a permutation; that
    is the coupling of a minibatch in flow matching (Tong et al. 2024). Otherwise partners are drawn
    from the rows of the plan, so that pairs have its law if the points of x have weights a.

    Parameters
    ----------
    x, y : (..., n, d), (..., m, d) tensors
        Points; further axes are those of many problems, and broadcast.
    a, b : (..., n), (..., m) tensors, optional
        Weights; uniform if None.
    metric, n_threads
        As in :func:`transport_cost`.
    seed : int
        Seed of the draws.
    return_info : bool
        Return (partners, gap): what the plan costs beyond the optimum, at most.

    Returns
    -------
    partners : (..., n) tensor of int64

    Examples
    --------
    >>> import torch, epsilot.torch
    >>> x = torch.tensor([[0.0], [1.0], [2.0]])
    >>> epsilot.torch.match(x, x.flip(0)).tolist()
    [2, 1, 0]
    """
    x, y = _as_tensor(x, "x"), _as_tensor(y, "y")
    stacking = stack_clouds(x.shape, y.shape, _shape(a), _shape(b))
    arrays: list[Passed] = list(map(_to_numpy, _stacks(stacking, (x, y, a, b))))
    found, gap = partners(*arrays, metric=metric, seed=seed, n_threads=n_threads)
    index = torch.from_numpy(found).to(x.device).reshape(*stacking.lead, x.shape[-2])
    if not return_info:
        return index
    return index, torch.from_numpy(np.asarray(gap)).to(x.device).reshape(stacking.lead)


# -- between tensors and arrays ------------------------------------------------------------------


class _Cost(Function):  # type: ignore[misc]
    """Values of a stack of problems; slopes are computed at once and kept for the way back."""

    @staticmethod
    def forward(ctx: Passed, solve: Solve, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        wanted = ctx.needs_input_grad[1:]
        found = solve(list(map(_to_numpy, tensors)), wanted)
        slopes = (
            None if slope is None else torch.from_numpy(slope).to(t)
            for slope, t in zip(found.slopes, tensors, strict=True)
        )
        ctx.save_for_backward(*slopes)
        like = _promoted(tensors)
        outputs = tuple(torch.from_numpy(np.array(z)).to(like) for z in found[:4])
        ctx.mark_non_differentiable(*outputs[1:])
        return outputs

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Passed, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(
            None if s is None else slope.to(s).reshape(-1, *[1] * (s.ndim - 1)) * s
            for s in ctx.saved_tensors
        )


def _between_clouds(
    loss: CloudLoss, x: Tensor, y: Tensor, a: Tensor | None, b: Tensor | None
) -> tuple[Tensor, Info]:
    """Return the values of problems between clouds, and what is known of them."""
    x, y = _as_tensor(x, "x"), _as_tensor(y, "y")
    stacking = stack_clouds(x.shape, y.shape, _shape(a), _shape(b))
    return _answer(loss, stacking, (x, y, a, b))


def _answer(
    solve: Solve, stacking: Stacking, tensors: Sequence[Tensor | None]
) -> tuple[Tensor, Info]:
    """Return the values of problems, and what is known of them."""
    found = _Cost.apply(solve, *_stacks(stacking, tensors))
    value, gap, f, g = (z.reshape((*stacking.lead, *z.shape[1:])) for z in found)
    return value, Info(gap, (f, g))


def _stacks(stacking: Stacking, tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Return tensors with one axis of problems."""
    return [
        None if t is None or own is None else _stacked(t, stacking, own)
        for t, own in zip(tensors, stacking.parts, strict=True)
    ]


def _stacked(t: Tensor, stacking: Stacking, own: tuple[int, ...]) -> Tensor:
    """Return a tensor with one axis of problems."""
    if not stacking.lead:
        return t[None]
    return t.expand(*stacking.lead, *own).reshape(stacking.size, *own)


def _spread_over(w: Tensor | None, other: Tensor | None, points: Tensor) -> Tensor | None:
    """Return weights; uniform ones of the other's total if only the other was given."""
    if w is not None or other is None or points.ndim < 2:
        return w
    n = points.shape[-2]
    return (_as_tensor(other, "a weight").sum(-1, keepdim=True) / n).expand(*other.shape[:-1], n)


def _as_tensor(x: Tensor, name: str) -> Tensor:
    """Refuse what is no tensor of real numbers."""
    if not (isinstance(x, Tensor) and x.is_floating_point()):
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InvalidProblem(
            f"{name} is of type {kind}; it must be a tensor of floating point numbers "
            "(epsilot.solve takes other arrays)."
        )
    return x


def _shape(w: Tensor | None) -> tuple[int, ...] | None:
    """Return the shape of weights, if there are any."""
    return None if w is None else tuple(_as_tensor(w, "a weight").shape)


def _to_numpy(t: Tensor | None) -> Array | None:
    """Return the numbers of a tensor, wherever it is, bfloat16 widened for NumPy."""
    if t is None:
        return None
    array: Array = (t.float() if t.dtype is torch.bfloat16 else t).detach().cpu().numpy()
    return array


def _promoted(tensors: Sequence[Tensor | None]) -> Tensor:
    """Return a tensor of the type and on the device that the value has."""
    given = [t for t in tensors if t is not None]
    dtype = given[0].dtype
    for t in given[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    return torch.empty(0, dtype=dtype, device=given[0].device)
