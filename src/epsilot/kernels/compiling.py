"""Compile kernels, with a cache on disk wherever one can be kept."""

from __future__ import annotations

import gc
import hashlib
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from numba import config, types
from numba.core import registry
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

from . import compile_watch

#: Options of every kernel. None lets LLVM round otherwise than written.
KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
#: Options of extrema, whose inputs are never NaN: LLVM may then vectorise them.
EXTREMUM = {**KERNEL, "fastmath": {"nnan", "nsz"}}
#: Options of loops that are inlined into a kernel. The kernel calls ``wide_vectors()`` itself.
INLINE = {**KERNEL, "forceinline": True}
INLINE_EXTREMUM = {**EXTREMUM, "forceinline": True}

_IMPORTS = re.compile(r"^\s*(?:from|import) (?:[^(\n]*\([^)]*\)|[^\n]*)", re.MULTILINE)

_has_warned = False


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate like ``numba.njit``; without a writable cache folder, compile in memory."""
    is_cached = bool(options.pop("cache", False))
    # Nothing calls a kernel from C.
    flags = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}

    def compiled(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        kernel = Kernel(function, targetoptions=flags)
        if is_cached:
            try:
                kernel.enable_caching()
                _name_files_by_key(kernel._cache, function.__code__.co_filename)
            except RuntimeError:  # no locator: nowhere to write
                _warn_once()
        return kernel

    return compiled


class Kernel(registry.CPUDispatcher):  # type: ignore[misc]
    """A compiled function that Python calls; kernels that call it compile it as a :class:`Part`.

    Numba optimises each function together with all functions below it, makes it callable from
    Python, and keeps it on disk. Where functions call each other, only the outermost one needs
    this. Python's read-only arrays are taken like others, so that no kernel is compiled for both.
    """

    def __init__(self, function: Callable[..., Any], **keywords: Any) -> None:
        super().__init__(function, **keywords)
        self._compiler._customize_flags = _QuickFlags
        self._part = Part(function, pipeline_class=_PartCompiler, **keywords)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the part that another kernel calls."""
        return self._part.get_call_template([types.unliteral(x) for x in args], kws)

    def get_overload(self, args: Any) -> Any:
        """Return the compiled part that another kernel calls."""
        return self._part.get_overload(args)

    def compile(self, signature: Any) -> Any:
        """Compile without garbage collection, which slows down the compiler's many allocations."""
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile(signature)
        finally:
            if is_collecting:
                gc.enable()

    def _compile_for_args(self, *args: Any, **keywords: Any) -> Any:
        with compile_watch.counted_whole():
            return self._compile_writable(*args, **keywords)

    def _compile_writable(self, *args: Any, **keywords: Any) -> Any:
        """Compile for writable arrays, whether the arguments are or not."""
        given = tuple(self.typeof_pyval(x) for x in args)
        wanted = tuple(_writable(kind) for kind in given)
        if wanted == given:
            return super()._compile_for_args(*args, **keywords)
        self._compilation_chain_init_hook()
        entry = self.compile(wanted)
        self._insert([kind._code for kind in given], entry, False)
        return entry


def _writable(kind: Any) -> Any:
    """Return the type of writable arrays for that of read-only ones, also within tuples."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=False)
    if isinstance(kind, types.BaseTuple):
        parts = [_writable(part) for part in kind.types]
        if parts == list(kind.types):
            return kind
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return kind


class Part(registry.CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call. LLVM optimises it within the kernel."""

    def __init__(self, function: Callable[..., Any], **keywords: Any) -> None:
        super().__init__(function, **keywords)
        self._compiler._customize_flags = _for_kernels_only

    def add_overload(self, compiled: Any) -> None:
        """Register the code for kernels; Python cannot call it."""
        key = object()  # in place of an entry point
        compiled = compiled._replace(entry_point=key)
        self.targetctx.insert_user_function(key, compiled.fndesc, [compiled.library])
        self.overloads[tuple(compiled.signature.args)] = compiled


class _QuickFlags(Flags):  # type: ignore[misc]
    """Numba's flags of a compilation, which are compared for every operation that is typed.

    Numba looks up each of the 25 flags by a property, a twentieth of the time of a first call.
    """

    _DEFAULTS: ClassVar = {name: option.default for name, option in Flags.options.items()}

    def values(self) -> dict[str, Any]:
        """Return all flags."""
        return {**self._DEFAULTS, **self._values}


def _for_kernels_only(flags: Any) -> Any:
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    return _QuickFlags(flags)


class _PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with a library that is not loaded."""

    def __init__(self, typing: Any, target: Any, library: Any, *options: Any) -> None:
        library = _PartLibrary(target.codegen(), "part")
        library.enable_object_caching()
        super().__init__(typing, target, library, *options)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part and of all parts below it."""

    def finalize(self) -> None:
        """Link the parts below, and optimise: loops are vectorised before they are inlined."""
        for library in dict.fromkeys(self._linking_libraries):
            module = library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        self._optimize_final_module()
        self._finalized = True


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


def _name_files_by_key(kept: Any, file: str) -> None:
    """Make a kernel's cache name its files by key, and drop them when the kernel has changed."""
    kept._cache_file = KeyedCacheFile(
        kept._cache_path, kept._impl.filename_base, _source_stamp(Path(file))
    )


@cache
def _source_stamp(file: Path) -> str:
    """Return a hash of the text of a kernel's file and of all kernels' files below it.

    Numba looks at the time of the kernel's own file only. The kernels that it calls are compiled
    into it, and most of them stand in other files.
    """
    files, new = {file}, [file]
    while new:
        found = _kernels_imported_by(new.pop()) - files
        files |= found
        new += found
    texts = [(x.name, _text(x)) for x in sorted(files)]
    return hashlib.sha256(repr(texts).encode()).hexdigest()


@cache
def _kernels_imported_by(file: Path) -> set[Path]:
    """Return the files that can hold kernels and whose names stand in a file's imports."""
    words = set(re.findall(r"\w+", " ".join(_IMPORTS.findall(_text(file)))))
    return {x for x in _kernel_files() if x.stem in words}


@cache
def _kernel_files() -> tuple[Path, ...]:
    folder = Path(__file__).parent
    return (*sorted(folder.glob("*.py")), folder.parent / "metrics.py")


@cache
def _text(file: Path) -> str:
    """Return the text of a file, or nothing for a cell of a notebook."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


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
