"""Atomic operations on integers in an array, for kernels that share work among threads.

A kernel that runs in one thread may let others take parts of its work (see
``pdasmd.batch_inner_loop``). All operations are sequentially consistent; ``array`` is 1-d
int64.
"""

from __future__ import annotations

import os
import threading
import time

import numba
from numba import types
from numba.extending import intrinsic

from .compiling import njit
from .llvm_ops import address

#: Reads of a counter without progress before a thread yields the processor.
SPINS_BEFORE_YIELD = 2000

_ORDER = "seq_cst"


def _address(context, builder, array_type, array, index):
    return address(context, builder, context.make_array(array_type)(context, builder, array), index)


@intrinsic
def load(typing_context, array, index):
    """Return array[index]."""

    def generate(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args)
        return builder.load_atomic(place, _ORDER, 8)

    return types.int64(array, types.intp), generate


@intrinsic
def store(typing_context, array, index, value):
    """Do array[index] = value."""

    def generate(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args[:2])
        builder.store_atomic(args[2], place, _ORDER, 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.int64), generate


@intrinsic
def add(typing_context, array, index, value):
    """Do array[index] += value and return the old value."""

    def generate(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args[:2])
        return builder.atomic_rmw("add", place, args[2], _ORDER)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def swap_if(typing_context, array, index, old, new):
    """Do array[index] = new if it is ``old``, and return whether it was."""

    def generate(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args[:2])
        pair = builder.cmpxchg(place, args[2], args[3], _ORDER, _ORDER)
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


if hasattr(os, "sched_yield"):
    _sched_yield = types.ExternalFunction("sched_yield", types.int32())

    @njit(cache=True, nogil=True)
    def give_way():
        """Yield the processor to other threads."""
        _sched_yield()

else:

    @njit(cache=True, nogil=True)
    def give_way():
        """Do nothing: the platform has no sched_yield."""


if numba.config.DISABLE_JIT:  # plain Python for coverage runs
    _lock = threading.Lock()

    def load(array, index):
        """Return array[index]."""
        return array[index]

    def store(array, index, value):
        """Do array[index] = value."""
        array[index] = value

    def add(array, index, value):
        """Do array[index] += value and return the old value."""
        with _lock:
            array[index] += value
            return array[index] - value

    def swap_if(array, index, old, new):
        """Do array[index] = new if it is ``old``, and return whether it was."""
        with _lock:
            is_old = array[index] == old
            if is_old:
                array[index] = new
            return is_old

    def give_way():
        """Yield the processor to other threads."""
        time.sleep(0)
