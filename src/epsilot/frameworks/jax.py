"""Adapt the loss functions to JAX: arrays or tracers in, values with gradients out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from .._types import Array
from ..arithmetic import keeping_subnormals
from ..errors import InvalidProblem, MissingExtra
from .front import Front, Match, Stacking
from .losses import Loss, check_held

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise MissingExtra("epsilot.jax", "JAX", "jax") from error

#: An array of JAX, or a tracer of one.
Traced: TypeAlias = jax.Array
#: Values, gaps and potentials of problems.
Found: TypeAlias = tuple[Traced, Traced, Traced, Traced]


class JaxFront(Front[Traced]):
    """The loss functions on arrays of JAX, under ``jit``, ``grad`` and ``vmap``."""

    def _checked(self, given: Any, name: str) -> Traced:
        try:
            z = jnp.asarray(given)
            kind = z.dtype
        except (TypeError, ValueError):
            z, kind = None, type(given).__name__
        if z is None or not jnp.issubdtype(z.dtype, jnp.floating):
            raise InvalidProblem(
                f"{name} is of type {kind}; it must be an array of floating point numbers."
            )
        return z

    def _solve(self, loss: Loss, stacking: Stacking, arrays: Sequence[Traced | None]) -> Found:
        loss.check()  # inside the callback, JAX would turn an InvalidProblem into its own error
        found: Found = _cost(loss, tuple(_stacks(stacking, arrays)))
        return found

    def _partners(
        self,
        find: Match,
        stacking: Stacking,
        arrays: Sequence[Traced | None],
        *,
        return_info: bool,
    ) -> Traced | tuple[Traced, Traced]:
        stacks = _stacks(stacking, arrays)
        given = [z for z in stacks if z is not None]
        n, dtype = given[0].shape[-2], jnp.result_type(*given)
        lead, integer = stacking.lead, jnp.result_type(int)
        found: tuple[Traced, Traced] = jax.pure_callback(
            partial(_matched, find, tuple(z is not None for z in stacks), integer),
            (jax.ShapeDtypeStruct((*lead, n), integer), jax.ShapeDtypeStruct(lead, dtype)),
            *map(jax.lax.stop_gradient, given),
            vmap_method="broadcast_all",
        )
        return found if return_info else found[0]

    def _uniform(self, other: Traced, n: int) -> Traced:
        return jnp.broadcast_to(other.sum(axis=-1, keepdims=True) / n, (*other.shape[:-1], n))


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
    """Return the slopes times the cotangents of the values."""
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
    """Call the solver from compiled code; return its answers, and the slopes in given arrays."""
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
    """Solve the problems of arrays with any number of leading axes."""
    arrays: list[Array] = [np.asarray(z) for z in given]
    lead, parts = _parts(arrays, is_given)
    with keeping_subnormals():  # XLA calls back from threads that do not
        outcome = loss(parts, [is_sloped and known for known in is_given])
    dtype = jnp.result_type(*arrays)
    found = [_held(z.reshape(lead + z.shape[1:]), dtype) for z in outcome[:4]]
    slopes = [s for s in outcome.slopes if s is not None]
    kept = zip(slopes, arrays if is_sloped else (), strict=True)
    return *found, *(_held(s.reshape(z.shape), z.dtype) for s, z in kept)


def _matched(
    find: Match, is_given: tuple[bool, ...], integer: Any, *given: Traced
) -> tuple[Array, Array]:
    """Find the partners in clouds with any number of leading axes."""
    arrays: list[Array] = [np.asarray(z) for z in given]
    lead, parts = _parts(arrays, is_given)
    with keeping_subnormals():
        index, gap = find(*parts)
    dtype = jnp.result_type(*arrays)
    return index.reshape(lead + index.shape[1:]).astype(integer), _held(gap.reshape(lead), dtype)


def _parts(
    arrays: Sequence[Array], is_given: tuple[bool, ...]
) -> tuple[tuple[int, ...], list[Any]]:
    """Return the leading axes, and arrays with one axis of problems, None if not given."""
    lead = arrays[0].shape[:-2]
    stacks = iter([_widened(z).reshape(-1, *z.shape[len(lead) :]) for z in arrays])
    return lead, [next(stacks) if known else None for known in is_given]


def _stacks(stacking: Stacking, arrays: Sequence[Traced | None]) -> list[Traced | None]:
    """Return arrays broadcast to the leading axes."""
    return [
        None if z is None or own is None else jnp.broadcast_to(z, (*stacking.lead, *own))
        for z, own in zip(arrays, stacking.parts, strict=True)
    ]


def _widened(z: Array) -> Array:
    """Return an array of a real type of NumPy, which has no bfloat16."""
    return z if z.dtype.kind == "f" else z.astype(np.float32)


def _held(z: Array, dtype: Any) -> Array:
    """Return numbers in another type."""
    check_held(z, dtype, float(jnp.finfo(dtype).max))
    return z.astype(dtype)


FRONT = JaxFront()
