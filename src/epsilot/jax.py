"""Transport costs that JAX can differentiate, each value and gradient with its certificate.

They work under ``jit``, ``grad`` and ``vmap``: compiled code calls the solvers of
:func:`epsilot.solve_batch` on the CPU and in float64, and a mapped axis is one batch of problems.
Gradients come from the solution (no iteration is unrolled), once: they cannot be differentiated
again.

>>> import jax, jax.numpy as jnp, epsilot.jax
>>> x, y = jnp.array([[0.0], [1.0]]), jnp.array([[2.0], [3.0]])
>>> jax.jit(jax.grad(epsilot.jax.transport_cost))(x, y).ravel().tolist()
[-2.0, -2.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ._types import Array, Passed
from .applications.extras import MissingExtra
from .applications.losses.shapes import Shape, Stacking, stack_cloud, stack_clouds, stack_costs
from .applications.losses.values import CloudLoss, Loss, MatrixLoss, SelfLoss
from .errors import InvalidProblem

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingExtra("epsilot.jax", "JAX", "jax") from error

__all__ = ["Info", "divergence", "transport_cost", "transport_cost_matrix"]

#: What JAX takes for an array, or traces as one.
Traced: TypeAlias = jax.Array
#: Values, gaps and potentials of problems.
Found: TypeAlias = tuple[Traced, Traced, Traced, Traced]


class Info(NamedTuple):
    """What is proved of each value: it exceeds the optimum by at most ``gap``."""

    gap: Traced
    potentials: tuple[Traced, Traced]  # dual feasible, in units of the cost


def transport_cost(
    x: Traced,
    y: Traced,
    a: Traced | None = None,
    b: Traced | None = None,
    *,
    metric: str = "sqeuclidean",
    rtol: float | None = None,
    eps: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Traced | tuple[Traced, Info]:
    r"""Return the optimal transport cost between weighted point clouds, differentiable in all four.

    .. math:: \min_X \sum_{ij} X_{ij} c(x_i, y_j) \quad X 1 = a,\; X^\top 1 = b,\; X \ge 0

    The gradients are :math:`\sum_j X_{ij} \nabla c(x_i, y_j)` in x, likewise in y, and the
    potentials in the weights: ε-subgradients, with ε the certified gap
    (:meth:`epsilot.Result.gradients`).

    Parameters
    ----------
    x, y : (..., n, d), (..., m, d) arrays
        Points; further axes are those of many problems, and broadcast.
    a, b : (..., n), (..., m) arrays, optional
        Weights of equal totals; uniform if None.
    metric : {"sqeuclidean", "euclidean", "cityblock", "cosine"}
        Where a metric has a kink, such as between coincident points, a pair has slope 0.
    rtol, eps : float, optional
        The gap to reach, relative to the value (default: 1e-6) or absolute.
    reg, tol : float, optional
        The *entropic* value, min <C, X> - reg H(X), to the gap ``tol`` (by default 1e-9 of the
        largest cost, or of reg).
    n_threads : int, optional
        Threads to use; one per core by default.
    return_info : bool
        Return (value, :class:`Info`), as ``jax.grad(..., has_aux=True)`` wants it.

    Returns
    -------
    value : (...) array
        Cost of a feasible plan: at most ``gap`` above the optimum.
    """
    loss = CloudLoss(metric=metric, rtol=rtol, eps=eps, reg=reg, tol=tol, n_threads=n_threads)
    answer = _between_clouds(loss, x, y, a, b)
    return answer if return_info else answer[0]


def transport_cost_matrix(
    M: Traced,
    a: Traced | None = None,
    b: Traced | None = None,
    *,
    rtol: float | None = None,
    eps: float | None = None,
    reg: float | None = None,
    tol: float | None = None,
    n_threads: int | None = None,
    return_info: bool = False,
) -> Traced | tuple[Traced, Info]:
    """Return the optimal transport cost of a cost matrix, differentiable in costs and weights.

    The gradient in M is the plan, that in the weights the potentials.

    Parameters
    ----------
    M : (..., n, m) array
        Costs; further axes are those of many problems, and broadcast.
    a, b : (..., n), (..., m) arrays, optional
        Weights of equal totals; uniform if None.
    rtol, eps, reg, tol, n_threads, return_info
        As in :func:`transport_cost`.
    """
    loss = MatrixLoss(rtol=rtol, eps=eps, reg=reg, tol=tol, n_threads=n_threads)
    M, a, b = _as_array(M, "M"), _as_weights(a, "a"), _as_weights(b, "b")
    answer = _answer(loss, stack_costs(M.shape, _shape(a), _shape(b)), (M, a, b))
    return answer if return_info else answer[0]


def divergence(
    x: Traced,
    y: Traced,
    reg: float,
    a: Traced | None = None,
    b: Traced | None = None,
    *,
    metric: str = "sqeuclidean",
    tol: float | None = None,
    n_threads: int | None = None,
) -> Traced:
    r"""Return the Sinkhorn divergence: entropic transport without its bias.

    .. math:: S(x, y) = \mathrm{OT}(x, y) - \tfrac12 \mathrm{OT}(x, x) - \tfrac12 \mathrm{OT}(y, y)

    Parameters
    ----------
    x, y, a, b, metric, tol, n_threads
        As in :func:`transport_cost`.
    reg : float
        Regularisation, in units of the cost.
    """
    loss = CloudLoss(metric=metric, reg=reg, tol=tol, n_threads=n_threads)
    x, y, a, b = _as_array(x, "x"), _as_array(y, "y"), _as_weights(a, "a"), _as_weights(b, "b")
    a, b = _spread_over(a, b, x), _spread_over(b, a, y)
    own = SelfLoss(metric=metric, reg=reg, tol=tol, n_threads=n_threads)
    cost, _ = _between_clouds(loss, x, y, a, b)
    of_x, _ = _answer(own, stack_cloud(x.shape, _shape(a)), (x, a))
    of_y, _ = _answer(own, stack_cloud(y.shape, _shape(b)), (y, b))
    return cost - (of_x + of_y) / 2


# -- between JAX and NumPy -----------------------------------------------------------------------


def _between_clouds(
    loss: CloudLoss, x: Traced, y: Traced, a: Traced | None, b: Traced | None
) -> tuple[Traced, Info]:
    """Return the values of problems between clouds, and what is known of them."""
    x, y, a, b = _as_array(x, "x"), _as_array(y, "y"), _as_weights(a, "a"), _as_weights(b, "b")
    return _answer(loss, stack_clouds(x.shape, y.shape, _shape(a), _shape(b)), (x, y, a, b))


def _answer(loss: Loss, stacking: Stacking, arrays: Sequence[Traced | None]) -> tuple[Traced, Info]:
    """Return the values of problems, and what is known of them."""
    full = (
        None if z is None or own is None else jnp.broadcast_to(z, (*stacking.lead, *own))
        for z, own in zip(arrays, stacking.parts, strict=True)
    )
    value, gap, f, g = _cost(loss, tuple(full))
    return value, Info(gap, (f, g))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _cost(loss: Loss, arrays: tuple[Traced | None, ...]) -> Found:
    """Return values, gaps and potentials of problems whose parts have the same lead."""
    return _called(loss, arrays, is_sloped=False)[0]


def _forward(
    loss: Loss, arrays: tuple[Traced | None, ...]
) -> tuple[Found, tuple[Traced | None, ...]]:
    return _called(loss, arrays, is_sloped=True)


def _backward(
    loss: Loss, slopes: tuple[Traced | None, ...], cotangents: Found
) -> tuple[tuple[Traced | None, ...]]:
    """Return the slopes, times that of what the values went into."""
    outer = cotangents[0]
    return (
        tuple(
            None if s is None else outer.reshape(outer.shape + (1,) * (s.ndim - outer.ndim)) * s
            for s in slopes
        ),
    )


_cost.defvjp(_forward, _backward)


def _called(
    loss: Loss, arrays: tuple[Traced | None, ...], *, is_sloped: bool
) -> tuple[Found, tuple[Traced | None, ...]]:
    """Return what the solver finds, outside compiled code, and the slopes in what was given."""
    given = [z for z in arrays if z is not None]
    lead, (n, m) = given[0].shape[:-2], loss.sizes([z.shape for z in given])
    dtype = jnp.result_type(*given)
    found = [jax.ShapeDtypeStruct((*lead, *own), dtype) for own in ((), (), (n,), (m,))]
    slopes = [jax.ShapeDtypeStruct(z.shape, z.dtype) for z in given] if is_sloped else []
    is_given = tuple(z is not None for z in arrays)
    answer = jax.pure_callback(
        partial(_solved, loss, is_given, is_sloped),
        (*found, *slopes),
        *given,
        vmap_method="broadcast_all",
    )
    rest = iter(answer[4:])
    return answer[:4], tuple(next(rest, None) if known else None for known in is_given)


def _solved(
    loss: Loss, is_given: tuple[bool, ...], is_sloped: bool, *given: Traced
) -> tuple[Array, ...]:
    """Solve the problems of arrays, however many axes of problems they have."""
    arrays: list[Array] = [np.asarray(z) for z in given]
    lead = arrays[0].shape[:-2]
    stacks = iter([_widened(z).reshape(-1, *z.shape[len(lead) :]) for z in arrays])
    parts = [next(stacks) if known else None for known in is_given]
    outcome = loss(parts, [is_sloped and known for known in is_given])
    dtype = jnp.result_type(*arrays)
    found = [z.reshape(lead + z.shape[1:]).astype(dtype) for z in outcome[:4]]
    slopes = [s for s in outcome.slopes if s is not None]
    kept = zip(slopes, arrays if is_sloped else (), strict=True)
    return *found, *(s.reshape(z.shape).astype(z.dtype) for s, z in kept)


def _widened(z: Array) -> Array:
    """Return numbers of a type that NumPy knows as real: bfloat16 is none."""
    return z if z.dtype.kind == "f" else z.astype(np.float32)


def _spread_over(w: Traced | None, other: Traced | None, points: Traced) -> Traced | None:
    """Return weights; uniform ones of the other's total if only the other was given."""
    if w is not None or other is None or points.ndim < 2:
        return w
    n = points.shape[-2]
    total = other.sum(axis=-1, keepdims=True)
    return jnp.broadcast_to(total / n, (*other.shape[:-1], n))


def _as_array(given: Passed, name: str) -> Traced:
    """Return an array of JAX, or say that it is none of real numbers."""
    z = jnp.asarray(given)
    if not jnp.issubdtype(z.dtype, jnp.floating):
        raise InvalidProblem(
            f"{name} is of type {z.dtype}; it must be an array of floating point numbers."
        )
    return z


def _as_weights(given: Passed, name: str) -> Traced | None:
    return None if given is None else _as_array(given, name)


def _shape(w: Traced | None) -> Shape | None:
    """Return the shape of weights, if there are any."""
    return None if w is None else tuple(w.shape)
