"""Compute by the rules of IEEE 754, also in threads that flush tiny numbers to zero.

Processors can replace subnormal numbers (below 2.2e-308) by zero. Each thread has its own switch,
which XLA turns on in the threads that call back from JAX, and ``torch.set_flush_denormal`` in its
own. New threads inherit it. Results would then depend on which thread computed them.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

SMALLEST_NORMAL = sys.float_info.min


@cache
def _library() -> tuple[Any, Any, Any] | None:
    """Return ``fegetenv``, ``fesetenv`` and the default environment of C, where it is known."""
    try:
        library = ctypes.CDLL(None)
        get, put = library.fegetenv, library.fesetenv
        if sys.platform == "darwin":
            default: Any = ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
        else:
            default = ctypes.c_void_p(-1)
    except (AttributeError, OSError, TypeError, ValueError):  # not a POSIX system
        return None
    return get, put, default


def are_kept() -> bool:
    """Tell whether this thread keeps subnormal numbers."""
    return SMALLEST_NORMAL * 0.5 > 0


def keep_subnormals() -> None:
    """Set the default floating-point mode in this thread, which keeps subnormal numbers."""
    library = _library()
    if library is not None:
        _, put, default = library
        put(default)


class keeping_subnormals:  # noqa: N801  (used like a function)
    """Keep subnormal numbers inside a block, then restore the thread's floating-point mode."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        library = None if are_kept() else _library()
        # 256 bytes hold the floating-point environment on every platform.
        self._before = None if library is None else ctypes.create_string_buffer(256)
        if library is not None:
            get, put, default = library
            get(self._before)
            put(default)

    def __exit__(self, *error: object) -> None:
        library = None if self._before is None else _library()
        if library is not None:
            library[1](self._before)
