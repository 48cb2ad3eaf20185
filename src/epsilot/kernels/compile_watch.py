"""Watch the compiler: the seconds that it takes, and one line for the user when it takes long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

#: Shows the seconds of the compilation under way.
ShowCompiling: TypeAlias = Callable[[float], None]


class _Watch(event.Listener):  # type: ignore[misc]
    """Add up the seconds of the outermost compilations; Numba compiles under one lock."""

    def __init__(self) -> None:
        self.seconds = 0.0  # of finished compilations
        self.began = 0.0  # of the outermost compilation under way
        self.depth = 0
        self.block: tuple[float, float] | None = None  # began, seconds before: counted_whole
        self.shows: list[ShowCompiling] = []  # of the live lines on the terminal
        self.is_kept = True  # whether compiled kernels are kept on disk
        self.is_announced = False

    def on_start(self, event: Any) -> None:
        """Begin a compilation."""
        now = time.perf_counter()
        if self.depth == 0:
            self.began = now
        self.depth += 1
        module = event.data["dispatcher"].py_func.__module__  # None in evaluated code
        if not (module or "").startswith("epsilot"):
            return
        if self.shows:
            self.shows[-1](now - self.began)
        elif self.seconds + now - self.began > 0.3:  # seconds
            self.announce()

    def on_end(self, event: Any) -> None:
        """End a compilation."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began

    def announce(self) -> None:
        """Tell the user once, if there is one to read it."""
        if not self.is_announced:
            self.is_announced = True
            if _has_reader() and not is_quiet():
                how_often = "once" if self.is_kept else "in each process"
                print(
                    f"epsilot: compiling kernels for this machine, {how_often}, about 4 to 10 s …",
                    file=sys.stderr,
                    flush=True,
                )


_watch = _Watch()
event.register("numba:compile", _watch)


def compile_seconds() -> float:
    """Return the seconds that this process has spent in the compiler."""
    block = _watch.block
    if block is not None:
        return block[1] + time.perf_counter() - block[0]
    return _watch.seconds + (time.perf_counter() - _watch.began if _watch.depth else 0.0)


def solver_clock() -> float:
    """Return the time in seconds on a clock that stands still while kernels compile."""
    return time.perf_counter() - compile_seconds()


@contextmanager
def counted_whole() -> Iterator[None]:
    """Count all of the block if it compiles: also loading, linking and writing the cache."""
    with global_compiler_lock:
        if _watch.depth > 0 or _watch.block is not None:
            yield
            return
        _watch.block = began, before = time.perf_counter(), _watch.seconds
        try:
            yield
        finally:
            if _watch.seconds > before:
                _watch.seconds = before + time.perf_counter() - began
            _watch.block = None


@contextmanager
def shown_by(show: ShowCompiling) -> Iterator[None]:
    """Show compilations by a live line inside the block, instead of the notice."""
    _watch.shows.append(show)
    try:
        yield
    finally:
        _watch.shows.remove(show)


def note_no_cache() -> None:
    """Note that compiled kernels are not kept."""
    _watch.is_kept = False


def is_quiet() -> bool:
    """Tell whether the environment variable ``EPSILOT_QUIET`` asks for no notice."""
    return os.environ.get("EPSILOT_QUIET", "0") not in ("", "0")


def _has_reader() -> bool:
    """Tell whether standard error is a terminal or a notebook."""
    stream = sys.stderr
    if stream is None:
        return False
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")
