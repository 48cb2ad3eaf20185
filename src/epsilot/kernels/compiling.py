"""Compile kernels, with a cache on disk wherever one can be kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba

_has_warned = False


def njit(**options: object) -> Callable[[Callable[..., Any]], Any]:
    """Do what ``numba.njit`` does; where no folder can hold the cache, compile in memory."""
    is_cached = bool(options.pop("cache", False))

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if is_cached and hasattr(kernel, "enable_caching"):  # a plain function without JIT
            try:
                kernel.enable_caching()
            except RuntimeError:  # no locator: nowhere to write
                _warn_once()
        return kernel

    return compiled


def _warn_once() -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "compiled kernels cannot be kept: neither the package's folder nor the user's cache "
            "folder can be written, so every process compiles them again (set NUMBA_CACHE_DIR to "
            "a folder that can be written).",
            RuntimeWarning,
            stacklevel=2,
        )
