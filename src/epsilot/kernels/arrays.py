"""New arrays, and copies of arrays, inside kernels.

Numba also knows NumPy's functions, but compiles each of them for every shape and type. A copy to a
slice brings an error message that takes more than a second to compile.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from .compiling import INLINE, njit
from .llvm_ops import IS_PLAIN

#: Alignment of new arrays, in bytes.
_ALIGNMENT = 64


def _maker(is_zero):
    """Return an intrinsic that makes arrays, filled with zeros or not."""

    @intrinsic
    def make(typing_context, shape, dtype=None):
        lengths = shape.types if isinstance(shape, types.BaseTuple) else (shape,)
        if not all(isinstance(x, types.Integer) for x in lengths):
            return None
        entry = types.float64 if dtype is None else dtype.dtype
        kind = types.Array(entry, len(lengths), "C")
        wanted = types.UniTuple(types.intp, len(lengths))

        def generate(context, builder, signature, args):
            if isinstance(signature.args[0], types.BaseTuple):
                parts = cgutils.unpack_tuple(builder, args[0])
            else:
                parts = [args[0]]
            sizes = [
                context.cast(builder, part, length, types.intp)
                for part, length in zip(parts, lengths, strict=True)
            ]
            entry = context.get_data_type(kind.dtype)
            strides = [context.get_constant(types.intp, context.get_abi_sizeof(entry))]
            for size in reversed(sizes):
                strides.append(builder.mul(strides[-1], size))
            n_bytes = strides.pop()
            alignment = context.get_constant(types.uint32, _ALIGNMENT)
            memory = context.nrt.meminfo_alloc_aligned(builder, size=n_bytes, align=alignment)
            data = builder.bitcast(context.nrt.meminfo_data(builder, memory), entry.as_pointer())
            if is_zero:
                cgutils.memset(builder, data, n_bytes, 0)
            array = make_array(kind)(context, builder)
            populate_array(
                array,
                data=data,
                shape=context.make_tuple(builder, wanted, sizes),
                strides=context.make_tuple(builder, wanted, strides[::-1]),
                itemsize=strides[0],
                meminfo=memory,
            )
            return array._getvalue()

        return kind(shape, types.none if dtype is None else dtype), generate

    return make


if IS_PLAIN:
    empty, zeros = np.empty, np.zeros
else:
    #: Return a new array of a length, or a tuple of lengths, and of a type.
    empty, zeros = _maker(is_zero=False), _maker(is_zero=True)


@njit(**INLINE)
def copy_to(x, out):
    """Write out_i = x_i."""
    for i in range(out.size):
        out[i] = x[i]


@njit(**INLINE)
def copy_block(X, out):
    """Write out_ij = X_ij."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = X[i, j]


@njit(**INLINE)
def accumulate(x):
    """Replace x_i by the sum of x_0, ..., x_i."""
    for i in range(1, x.size):
        x[i] += x[i - 1]
