"""Check arguments; each error is one sentence: the value received, and the one required."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar, cast

import numpy as np

from ._types import Vector
from .errors import InvalidProblem, UnknownOption
from .wording import LONGEST_SHOWN, named, shown

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
#: Largest count, and largest integer that is accepted as a real number.
MAX_COUNT, MAX_INTEGER = 2**63 - 1, 10**300
#: Types that :func:`plain` returns unchanged.
PLAIN = frozenset((float, int, bool, str, type(None)))
#: DLPack device types whose memory the CPU reads: kDLCPU and kDLCUDAHost (pinned).
CPU_DEVICES = (1, 3)


def numeric(x: object, name: str) -> Vector:
    """Return ``x`` as a float64 array, without a copy if it is one."""
    if type(x) is np.ndarray and x.dtype == np.float64:
        return x
    if np.ma.is_masked(x):
        raise InvalidProblem(
            f"{name} has masked entries; every entry must be a number (fill or remove them)."
        )
    if hasattr(x, "toarray"):
        raise InvalidProblem(
            f"{name} is a sparse matrix; it must be dense, since a missing entry need not be zero "
            f"(pass {name}.toarray() if zeros are meant)."
        )
    try:
        array = np.asarray(as_numpy(x, name))
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except InvalidProblem:
        raise
    except (TypeError, ValueError, OverflowError, AttributeError, RuntimeError, BufferError):
        kind = getattr(x, "dtype", type(x).__name__)
        text = _text_column(x)
        if text is not None:
            raise InvalidProblem(
                f"{name} has the column {shown(text)}, whose entries are not all numbers (leave "
                f"the column out, as {name}[[...]] does, or convert it)."
            ) from None
        remedy = (
            "if it names a file, read that with numpy.loadtxt"
            if isinstance(x, str | os.PathLike)
            else "convert it with numpy.asarray(..., dtype=float)"
        )
        raise InvalidProblem(
            f"{name} is of type {named(kind)}; it must be a rectangular array of real numbers "
            f"({remedy})."
        ) from None


def _text_column(x: Any) -> object | None:
    """Return the name of the first column of a data frame that does not hold numbers."""
    names = getattr(x, "columns", ())
    if callable(names) or not hasattr(x, "__getitem__"):
        return None
    for name in names:
        try:
            np.asarray(x[name], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return str(name)
    return None


def as_numpy(x: object, name: str) -> object:
    """Convert an array of PyTorch, JAX, pandas, polars or xarray to NumPy.

    Memory is shared where possible. Other values are returned unchanged: Dask arrays, which are
    read later, and values that cannot be converted, which :func:`numeric` rejects.
    """
    if isinstance(x, (np.ndarray, np.generic)) or is_of_dask(x):
        return x
    has_array, has_dlpack = hasattr(x, "__array__"), hasattr(x, "__dlpack__")
    if not (has_array or has_dlpack):
        return x
    _check_readable(x, name)
    try:
        return np.asarray(x) if has_array else np.from_dlpack(x)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, BufferError):
        return x


def is_of_dask(x: object) -> bool:
    """Tell whether an array is lazy: one of Dask, or of xarray around one of Dask."""
    return hasattr(x, "__dask_graph__") and x.__dask_graph__() is not None


def _check_readable(x: object, name: str) -> None:
    """Reject arrays on another device, traced arrays, and tensors that require a gradient."""
    if type(x).__name__.endswith("Tracer"):
        raise InvalidProblem(
            f"{name} is traced by JAX and has no values yet; use epsilot.jax.transport_cost in "
            "jit, grad and vmap."
        )
    if hasattr(x, "__dlpack_device__"):
        try:
            kind = int(x.__dlpack_device__()[0])
        except (BufferError, RuntimeError, ValueError):
            kind = CPU_DEVICES[0]  # unknown to DLPack; NumPy decides
        if kind not in CPU_DEVICES:
            raise InvalidProblem(
                f"{name} is on the device {getattr(x, 'device', kind)}; epsilot reads "
                "the memory of the processor (copy it: .cpu() in PyTorch, jax.device_get in JAX)."
            )
    if getattr(x, "requires_grad", False) is True:
        raise InvalidProblem(
            f"{name} requires a gradient, which would be lost; use epsilot.torch, or pass "
            f"{name}.detach()."
        )


def cost_matrix(M: object) -> Vector:
    """Return a cost as an (n, m) float64 array, or reject it."""
    C = numeric(M, "M")
    if C.ndim != 2 or C.size == 0:
        raise InvalidProblem(
            f"M has shape {C.shape}; a cost must be a matrix with at least one row and one "
            "column (n sources by m targets)."
        )
    return C


def entries(given: Iterable[T], name: str) -> list[T]:
    """Return the entries of a sequence, or reject any other value."""
    try:
        return list(given)
    except TypeError:
        raise InvalidProblem(
            f"{name} is {shown(given)}; it must be a list or an array with one entry for each."
        ) from None


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Reject a value that is not one of a few words."""
    if not (isinstance(value, str) and value in allowed):
        raise InvalidProblem(
            f"{name} is {shown(value)}; it must be {' or '.join(map(repr, allowed))}."
        )


def check_flag(name: str, value: object) -> None:
    """Reject a value other than True, False and None."""
    if not (value is None or isinstance(value, (bool, np.bool_))):
        raise InvalidProblem(f"{name} is {shown(value)}; it must be True, False or None.")


def plain(value: object) -> object:
    """Convert a NumPy scalar, or a 0-dimensional array of any library, to a Python value.

    Other values are returned unchanged. PyTorch and JAX are not imported.
    """
    if type(value) in PLAIN or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    try:
        item: object = value.item()
    except (TypeError, ValueError, RuntimeError):  # traced by JAX, or without values
        return value
    return item


def check_count(name: str, value: object, least: int) -> int:
    """Return an integer of at least ``least``, or reject any other value."""
    count = plain(value)
    if not (is_integer(count) and least <= count <= MAX_COUNT):
        raise InvalidProblem(f"{name} is {shown(count)}; it must be an integer, {least} or more.")
    return int(count)


def check_least(name: str, value: object, least: float) -> float:
    """Return a finite number of at least ``least``, or reject any other value."""
    number = plain(value)
    if not (is_real(number) and least <= float(number) < math.inf):
        raise InvalidProblem(f"{name} is {shown(number)}; it must be a number, at least {least}.")
    return float(number)


def check_options(options: object) -> None:
    """Reject options of a method that are not a dict."""
    if not (options is None or isinstance(options, dict)):
        raise InvalidProblem(f"options is {shown(options)}; it must be a dict, or None.")


def check_positive(name: str, value: object) -> float:
    """Return a positive finite number, or reject any other value."""
    number = plain(value)
    if not (is_real(number) and 0 < float(number) < math.inf):
        raise InvalidProblem(f"{name} is {shown(number)}; it must be a positive finite number.")
    return float(number)


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether a value is an integer and not a bool."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_real(value: object) -> TypeGuard[float]:
    """Tell whether a value is a real number in the range of float64, and not a bool."""
    if type(value) is float:
        return True
    if isinstance(value, Integral) and abs(int(value)) > MAX_INTEGER:
        return False
    return isinstance(value, Real) and not isinstance(value, bool)


# -- names of arguments -----------------------------------------------------------------------


def unknown_argument(function: str, argument: str, known: Mapping[str, str]) -> UnknownOption:
    """Return the error for an unknown argument, which suggests the one that may be meant.

    ``known`` maps the names that a user may have in mind to those of arguments.
    """
    import difflib

    near = difflib.get_close_matches(argument[:LONGEST_SHOWN], known, n=1)
    remedy = f"did you mean {known[near[0]]}?" if near else "leave it out (see help)."
    error = UnknownOption(f"{function}() has no argument {shown(argument)}; {remedy}")
    error.argument, error.known = argument, known
    return error


def with_suggestions(
    function: F, module: str, aliases: Callable[[], Mapping[str, str]] = dict
) -> F:
    """Return a function that suggests arguments in the place of unknown ones.

    ``module`` is where users find the function. ``aliases`` returns names of other libraries with
    those of arguments here.
    """
    parameters = inspect.signature(function).parameters.values()
    own = {x.name: x.name for x in parameters if x.kind is not inspect.Parameter.VAR_KEYWORD}
    takes_more = len(own) < len(parameters)
    called = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not takes_more:
            for word in keywords:
                if word not in own:
                    others = {alias: x for alias, x in aliases().items() if x in own}
                    raise unknown_argument(called, word, others | own)
            return function(*args, **keywords)
        try:
            return function(*args, **keywords)
        except UnknownOption as error:
            if error.argument not in keywords:
                raise
            known = {**(error.known or {}), **own}
            raise unknown_argument(called, error.argument or "", known) from None

    call.__module__, call.__qualname__ = module, called  # by which it is pickled
    return cast(F, call)
