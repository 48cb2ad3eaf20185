"""The notice of compiling, and the clock that stands still meanwhile."""

import io
import sys
import time
from types import SimpleNamespace

import numba
import pytest

from epsilot.display.progress import LiveLine
from epsilot.display.text import compile_note
from epsilot.kernels import compile_watch, compiling
from epsilot.kernels.compile_watch import _Watch


class Stream(io.StringIO):
    """A terminal, a notebook or a pipe."""

    def __init__(self, is_terminal, module="io"):
        super().__init__()
        self._is_terminal = is_terminal
        self.__class__ = type("Stream", (Stream,), {"__module__": module})

    def isatty(self):
        return self._is_terminal


@pytest.fixture
def watch(monkeypatch):
    """A watch of its own, which has been compiling for a second."""
    monkeypatch.delenv("EPSILOT_QUIET", raising=False)
    fresh = _Watch()
    fresh.seconds = 1.0
    return fresh


def compile_in(watch, module="epsilot.kernels.x"):
    kernel = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=lambda: 0)})
    kernel.data["dispatcher"].py_func.__module__ = module
    watch.on_start(kernel)
    watch.on_end(kernel)


@pytest.mark.parametrize(
    ("stream", "quiet", "module", "n_lines"),
    [
        (Stream(True), None, "epsilot.kernels.x", 1),
        (Stream(False, "ipykernel.iostream"), None, "epsilot.kernels.x", 1),
        (Stream(False), None, "epsilot.kernels.x", 0),
        (Stream(True), "1", "epsilot.kernels.x", 0),
        (Stream(True), "0", "epsilot.kernels.x", 1),
        (Stream(True), None, "users_own", 0),
        (Stream(True), None, None, 0),
    ],
)
def test_one_line_is_for_readers_only(watch, monkeypatch, stream, quiet, module, n_lines):
    monkeypatch.setattr(sys, "stderr", stream)
    if quiet is not None:
        monkeypatch.setenv("EPSILOT_QUIET", quiet)
    for _ in range(2):
        compile_in(watch, module)
    lines = stream.getvalue().splitlines()
    assert len(lines) == n_lines
    assert all(
        line.startswith("epsilot: compiling kernels for this machine, once,") for line in lines
    )


def test_short_compilations_are_not_worth_a_line(watch, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(True))
    watch.seconds = 0.0
    compile_in(watch)
    assert sys.stderr.getvalue() == ""


def test_without_a_cache_every_process_compiles(watch, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(True))
    watch.is_kept = False
    compile_in(watch)
    assert "in each process" in sys.stderr.getvalue()


def test_a_live_line_says_compiling(watch, monkeypatch):
    monkeypatch.setattr(compile_watch, "_watch", watch)
    monkeypatch.setattr(sys, "stderr", Stream(True))
    with LiveLine(force=True):
        compile_in(watch)
    written = sys.stderr.getvalue()
    assert "compiling kernels" in written
    assert "epsilot: compiling" not in written
    assert watch.shows == []


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing compiles")
def test_the_solver_clock_stands_still_while_kernels_compile():
    @numba.njit
    def double(x):
        return 2 * x

    real, solver, compiled = (
        time.perf_counter(),
        compile_watch.solver_clock(),
        compile_watch.compile_seconds(),
    )
    assert double(2) == 4
    real, solver = time.perf_counter() - real, compile_watch.solver_clock() - solver
    compiled = compile_watch.compile_seconds() - compiled
    assert compiled > 0
    assert solver == pytest.approx(real - compiled, abs=1e-3)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing compiles")
def test_writing_the_cache_counts_as_compiling(monkeypatch):
    @compiling.njit()
    def double(x):
        return 2 * x

    # Numba writes the cache after its event of compilation.
    monkeypatch.setattr(double._cache, "save_overload", lambda *_: time.sleep(0.2), raising=False)
    compiled = compile_watch.compile_seconds()
    assert double(2) == 4
    assert compile_watch.compile_seconds() - compiled > 0.2
    compiled = compile_watch.compile_seconds()
    assert double(3) == 6
    assert compile_watch.compile_seconds() == compiled


def test_a_full_disk_while_saving_is_a_warning_only(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "_has_warned", False)
    monkeypatch.setattr(compile_watch, "_watch", _Watch())
    cache = compiling.KeyedCacheFile(str(tmp_path / "missing" / "folder"), "kernel", "stamp")
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        cache.save("types", "code")
    cache.save("types", "code")


def test_results_tell_solving_from_compiling():
    assert compile_note(4.0) == " (and 4.0 s compiling, once)"
    assert compile_note(0.0) == ""
