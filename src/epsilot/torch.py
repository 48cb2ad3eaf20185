"""Transport costs for PyTorch: certified values with certified gradients.

Problems are solved on the CPU in float64. Tensors of other types and on other devices are copied
there and back. Gradients come from the solution (no iteration is unrolled); there are no second
derivatives.

>>> import torch, epsilot.torch
>>> x = torch.tensor([[0.0], [1.0]], requires_grad=True)
>>> cost = epsilot.torch.transport_cost(x, torch.tensor([[2.0], [3.0]]))
>>> cost.backward()
>>> cost.item(), x.grad.ravel().tolist()
(4.0, [-2.0, -2.0])
"""

from __future__ import annotations

from .engine.request import public
from .frameworks.front import Info
from .frameworks.torch import FRONT, TransportLoss

__all__ = [
    "Info",
    "TransportLoss",
    "divergence",
    "match",
    "transport_cost",
    "transport_cost_matrix",
]

transport_cost = public(FRONT.transport_cost, __name__)
transport_cost_matrix = public(FRONT.transport_cost_matrix, __name__)
divergence = public(FRONT.divergence, __name__)
match = public(FRONT.match, __name__)
