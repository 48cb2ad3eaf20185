"""Compile kernels, with a cache on disk wherever one can be kept."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile

from . import compile_watch

#: Options of every kernel. None lets LLVM round otherwise than written.
KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
#: Options of extrema, whose inputs are never NaN: LLVM may then vectorise them.
EXTREMUM = {**KERNEL, "fastmath": {"nnan", "nsz"}}
#: Options of loops that are inlined into a kernel. The kernel calls ``wide_vectors()`` itself.
INLINE = {**KERNEL, "forceinline": True}
INLINE_EXTREMUM = {**EXTREMUM, "forceinline": True}

_has_warned = False


def njit(**options: object) -> Callable[[Callable[..., Any]], Any]:
    """Decorate like ``numba.njit``; without a writable cache folder, compile in memory."""
    is_cached = bool(options.pop("cache", False))

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if is_cached and hasattr(kernel, "enable_caching"):  # a plain function without JIT
            try:
                kernel.enable_caching()
                _name_files_by_key(kernel._cache)
            except RuntimeError:  # no locator: nowhere to write
                _warn_once()
        return kernel

    return compiled


class KeyedCacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """A cache index whose data files are named by a hash of their key.

    Numba numbers the files. Two processes that compile one kernel for different types at the same
    moment then choose the same number, and a third may load code for the wrong types. Numba also
    raises where a file of the cache cannot be read, such as one that names a class of an earlier
    version. Here such a kernel is compiled again.
    """

    def load(self, key: object) -> object:
        """Return the data of a key, or None if they are missing or unreadable."""
        try:
            return super().load(key)
        except Exception:  # a pickle can raise anything
            return None

    def _load_index(self) -> dict[object, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # a pickle can raise anything
            return {}

    def save(self, key: object, data: object) -> None:
        """Write the data first, then the index that names them."""
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        name = self._data_name(int(digest[:15], 16))
        try:
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})
        except OSError:  # the folder became read-only, or the disk is full
            _warn_once()


def _name_files_by_key(cache: Any) -> None:
    """Make a kernel's cache name its files by key instead of by number."""
    stamp = cache._impl.locator.get_source_stamp()
    cache._cache_file = KeyedCacheFile(cache._cache_path, cache._impl.filename_base, stamp)


def _warn_once() -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        compile_watch.note_no_cache()
        warnings.warn(
            "compiled kernels cannot be kept: neither the package's folder nor the user's cache "
            "folder can be written, so every process compiles them again (set NUMBA_CACHE_DIR to "
            "a folder that can be written).",
            RuntimeWarning,
            stacklevel=2,
        )
