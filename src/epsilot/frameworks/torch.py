"""Adapt the loss functions to PyTorch: tensors in, values with gradients out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array
from ..arguments import check_choice, check_flag
from ..engine.request import public
from ..errors import InvalidProblem, MissingExtra
from .front import Front, Match, Stacking
from .losses import Loss, check_held

try:
    import torch
    from torch import Tensor
    from torch.autograd.function import Function, once_differentiable
except ImportError as error:
    raise MissingExtra("epsilot.torch", "PyTorch", "torch") from error


class TorchFront(Front[Tensor]):
    """The loss functions on tensors of any device and floating point type."""

    def _checked(self, given: Any, name: str) -> Tensor:
        if not (isinstance(given, Tensor) and given.is_floating_point()):
            kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
            raise InvalidProblem(
                f"{name} is of type {kind}; it must be a tensor of floating point numbers "
                "(epsilot.solve takes other arrays)."
            )
        return given

    def _solve(
        self, loss: Loss, stacking: Stacking, arrays: Sequence[Tensor | None]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        found = _Cost.apply(loss, *_stacks(stacking, arrays))
        value, gap, f, g = (z.reshape((*stacking.lead, *z.shape[1:])) for z in found)
        return value, gap, f, g

    def _partners(
        self,
        find: Match,
        stacking: Stacking,
        arrays: Sequence[Tensor | None],
        *,
        return_info: bool,
    ) -> Tensor | tuple[Tensor, Tensor]:
        parts: list[Any] = list(map(_to_numpy, _stacks(stacking, arrays)))
        found, gap = find(*parts)
        assert arrays[0] is not None
        place = arrays[0].device
        index = torch.from_numpy(found).to(place).reshape(*stacking.lead, found.shape[-1])
        if not return_info:
            return index
        return index, torch.from_numpy(np.asarray(gap)).to(place).reshape(stacking.lead)

    def _uniform(self, other: Tensor, n: int) -> Tensor:
        return (other.sum(-1, keepdim=True) / n).expand(*other.shape[:-1], n)


class _Cost(Function):  # type: ignore[misc]
    """Values of stacked problems; the forward pass computes the slopes for the backward pass."""

    @staticmethod
    def forward(ctx: Any, loss: Loss, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        wanted = ctx.needs_input_grad[1:]
        found = loss(list(map(_to_numpy, tensors)), wanted)
        slopes = (
            None if slope is None or t is None else _held(slope, t)
            for slope, t in zip(found.slopes, tensors, strict=True)
        )
        ctx.save_for_backward(*slopes)
        like = _promoted(tensors)
        outputs = tuple(_held(np.array(z), like) for z in found[:4])
        ctx.mark_non_differentiable(*outputs[1:])
        return outputs

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(
            None if s is None else slope.to(s).reshape(-1, *[1] * (s.ndim - 1)) * s
            for s in ctx.saved_tensors
        )


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


def _to_numpy(t: Tensor | None) -> Array | None:
    """Copy a tensor from any device to NumPy, which has no bfloat16."""
    if t is None:
        return None
    array: Array = (t.float() if t.dtype is torch.bfloat16 else t).detach().cpu().numpy()
    return array


def _promoted(tensors: Sequence[Tensor | None]) -> Tensor:
    """Return an empty tensor of the type and on the device of the value."""
    given = [t for t in tensors if t is not None]
    dtype = given[0].dtype
    for t in given[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    return torch.empty(0, dtype=dtype, device=given[0].device)


def _held(z: Array, like: Tensor) -> Tensor:
    """Return numbers as a tensor of the type and on the device of another."""
    check_held(z, like.dtype, torch.finfo(like.dtype).max)
    return torch.from_numpy(z).to(like)


FRONT = TorchFront()

#: Ways to combine the values of many problems.
REDUCTIONS = ("mean", "sum", "none")


class TransportLoss(torch.nn.Module):  # type: ignore[misc]
    """Transport cost between points as a module, whose keywords are given once.

    Parameters
    ----------
    debias : bool
        Return the Sinkhorn divergence instead of the transport cost; it needs ``reg``.
    reduction : {"mean", "sum", "none"}
        What to return of the values of many problems, which leading axes of the points hold.
    **keywords
        As in :func:`transport_cost`, or in :func:`divergence` with ``debias``, but for
        ``return_info``.

    Examples
    --------
    >>> import torch, epsilot.torch
    >>> loss = epsilot.torch.TransportLoss(metric="euclidean")
    >>> loss
    TransportLoss(metric='euclidean')
    >>> x = torch.tensor([[[0.0], [1.0]], [[0.0], [1.0]]])  # two problems
    >>> loss(x, x + 3.0)
    tensor(3.)
    """

    def __init__(self, *, debias: bool = False, reduction: str = "mean", **keywords: Any) -> None:
        super().__init__()
        check_flag("debias", debias)
        check_choice("reduction", reduction, REDUCTIONS)
        self.debias, self.reduction, self.keywords = bool(debias), reduction, dict(keywords)
        if self.debias and keywords.get("reg") is None:
            raise InvalidProblem(
                "debias=True was given without reg; the Sinkhorn divergence needs a regularisation."
            )
        if "return_info" in keywords:
            raise InvalidProblem(
                "return_info was given to TransportLoss, whose value is one tensor; call "
                "epsilot.torch.transport_cost for certificates."
            )
        one = torch.zeros(1, 1)
        self._values(one, one, None, None)  # checks the keywords

    def forward(
        self, x: Tensor, y: Tensor, a: Tensor | None = None, b: Tensor | None = None
    ) -> Tensor:
        """Return the loss of points x and y with weights a and b.

        Parameters
        ----------
        x, y : (..., n, d), (..., m, d) tensors
            Points.
        a, b : (..., n), (..., m) tensors, optional
            Weights; uniform if None.
        """
        value = self._values(x, y, a, b)
        if self.reduction == "none":
            return value
        return value.mean() if self.reduction == "mean" else value.sum()

    def _values(self, x: Tensor, y: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor:
        call = public(FRONT.divergence if self.debias else FRONT.transport_cost, __name__)
        value: Tensor = call(x, y, a=a, b=b, **self.keywords)
        return value

    def extra_repr(self) -> str:
        """Return the keywords that are not defaults."""
        own = {"debias": self.debias, "reduction": self.reduction}
        given = {name: value for name, value in own.items() if value not in (False, "mean")}
        return ", ".join(f"{name}={value!r}" for name, value in (given | self.keywords).items())
