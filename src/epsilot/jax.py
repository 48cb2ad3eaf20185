"""Transport costs for JAX: certified values with certified gradients.

They work under ``jit``, ``grad`` and ``vmap``: compiled code calls the solvers of
:func:`epsilot.solve_batch` on the CPU and in float64, and a mapped axis is one batch of problems.
Gradients come from the solution (no iteration is unrolled); there are no second derivatives.

>>> import jax, jax.numpy as jnp, epsilot.jax
>>> x, y = jnp.array([[0.0], [1.0]]), jnp.array([[2.0], [3.0]])
>>> jax.jit(jax.grad(epsilot.jax.transport_cost))(x, y).ravel().tolist()
[-2.0, -2.0]
>>> epsilot.jax.match(x, y[::-1]).tolist()
[1, 0]
"""

from __future__ import annotations

from .engine.request import public
from .frameworks.front import Info
from .frameworks.jax import FRONT

__all__ = ["Info", "divergence", "match", "transport_cost", "transport_cost_matrix"]

transport_cost = public(FRONT.transport_cost, __name__)
transport_cost_matrix = public(FRONT.transport_cost_matrix, __name__)
divergence = public(FRONT.divergence, __name__)
match = public(FRONT.match, __name__)
