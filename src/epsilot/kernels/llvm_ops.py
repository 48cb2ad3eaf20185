"""Emit arithmetic as LLVM code, on floats and on vectors of floats.

A formula of :class:`Lane` operands becomes straight-line code without fast-math flags: one
instruction per operation, in the order of the formula, whatever the vector width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.base import BaseContext

#: A Lane where code is emitted; an array or a number where a formula runs in Python.
Operand: TypeAlias = Any

_WIDE = '"prefer-vector-width"="512"'


def prefer_wide_vectors(function: ir.Function) -> None:
    """Ask LLVM for 512-bit vectors in one function, where the CPU has them."""
    set.add(function.attributes, _WIDE)  # llvmlite's own add knows only unquoted names


def constant(kind: ir.Type, number: float) -> ir.Constant:
    """Return a constant of a type, in every lane of a vector."""
    if not isinstance(kind, ir.VectorType):
        return ir.Constant(kind, number)
    return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)


def _element(kind: ir.Type) -> ir.Type:
    return kind.element if isinstance(kind, ir.VectorType) else kind


def integers(kind: ir.Type) -> ir.Type:
    """Return the integer type as wide as a float, or as each lane of a vector."""
    if isinstance(kind, ir.VectorType):
        return ir.VectorType(integers(kind.element), kind.count)
    return ir.IntType(64 if kind == ir.DoubleType() else 32)


def call(builder: ir.IRBuilder, name: str, *args: ir.Value) -> ir.Value:
    """Emit a call of an LLVM intrinsic on floats or vectors of them."""
    kind = args[0].type
    bits = integers(kind)
    is_vector = isinstance(kind, ir.VectorType)
    suffix = f"v{kind.count}f{bits.element.width}" if is_vector else f"f{bits.width}"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.{suffix}"
    )
    return builder.call(function, args)


def keep_order(builder: ir.IRBuilder) -> None:
    """Emit a barrier that later reads of memory do not cross, so that parts of a loop stay apart.

    Four interleaved exponentials need more registers than a processor has.
    """
    nothing = ir.FunctionType(ir.VoidType(), [])
    builder.asm(nothing, "", "~{memory}", (), True)


def spread(builder: ir.IRBuilder, x: ir.Value, kind: ir.Type) -> ir.Value:
    """Emit a vector with ``x`` in every lane, or ``x`` itself for a scalar type."""
    if not isinstance(kind, ir.VectorType):
        return x
    nothing, index = ir.Constant(kind, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, x, ir.Constant(index, 0))
    places = ir.Constant(ir.VectorType(index, kind.count), None)
    return builder.shuffle_vector(first, nothing, places)


def address(
    context: BaseContext, builder: ir.IRBuilder, array: Any, at: ir.Value, n_entries: int = 1
) -> ir.Value:
    """Emit the address of entry ``at`` of a contiguous array.

    With ``NUMBA_BOUNDSCHECK=1`` it raises IndexError unless the array has ``n_entries`` there.
    """
    if context.enable_boundscheck:
        after = builder.add(at, ir.Constant(at.type, n_entries))
        is_before = builder.icmp_signed("<", at, ir.Constant(at.type, 0))
        is_beyond = builder.icmp_signed(">", after, array.nitems)
        with builder.if_then(builder.or_(is_before, is_beyond), likely=False):
            message = "entries of a vector are out of bounds"
            context.call_conv.return_user_exc(builder, IndexError, (message,))
    return builder.gep(array.data, [at])


class Lane:
    """A value of the emitted code; arithmetic with it emits instructions."""

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self.builder, self.value = builder, value

    def _of(self, other: Lane | float) -> ir.Value:
        return other.value if isinstance(other, Lane) else constant(self.value.type, float(other))

    def __add__(self, other: Lane | float) -> Lane:
        return Lane(self.builder, self.builder.fadd(self.value, self._of(other)))

    def __sub__(self, other: Lane | float) -> Lane:
        return Lane(self.builder, self.builder.fsub(self.value, self._of(other)))

    def __mul__(self, other: Lane | float) -> Lane:
        return Lane(self.builder, self.builder.fmul(self.value, self._of(other)))

    def __neg__(self) -> Lane:
        return Lane(self.builder, self.builder.fneg(self.value))

    def __abs__(self) -> Lane:
        return Lane(self.builder, call(self.builder, "fabs", self.value))

    def fma(self, factor: Lane | float, term: Lane | float) -> Lane:
        """Emit the product with a factor plus a term, rounded once."""
        args = self.value, self._of(factor), self._of(term)
        return Lane(self.builder, call(self.builder, "fma", *args))

    def larger(self, other: Lane | float) -> Lane:
        """Emit the larger of two values."""
        theirs = self._of(other)
        is_larger = self.builder.fcmp_ordered(">", self.value, theirs)
        return Lane(self.builder, self.builder.select(is_larger, self.value, theirs))

    def like(self, other: Lane) -> Lane:
        """Emit the conversion to the precision of another value."""
        kind = other.value.type
        if kind == self.value.type:
            return self
        is_wider = _element(kind) == ir.DoubleType()
        convert = self.builder.fpext if is_wider else self.builder.fptrunc
        return Lane(self.builder, convert(self.value, kind))

    def apply(self, emit: Callable[[ir.IRBuilder, ir.Value], ir.Value]) -> Lane:
        """Emit a function ``emit(builder, value)``."""
        return Lane(self.builder, emit(self.builder, self.value))


def fma(x: Operand, y: Operand, z: Operand) -> Operand:
    """Return x y + z, rounded once where code is emitted."""
    return x.fma(y, z) if isinstance(x, Lane) else x * y + z


def like(x: Operand, other: Operand) -> Operand:
    """Return x in the precision of another value."""
    return x.like(other) if isinstance(x, Lane) else np.asarray(x).astype(other.dtype)


def larger(x: Operand, y: Operand) -> Operand:
    """Return the larger of two values."""
    return x.larger(y) if isinstance(x, Lane) else np.maximum(x, y)


IS_PLAIN = bool(numba.config.DISABLE_JIT)
