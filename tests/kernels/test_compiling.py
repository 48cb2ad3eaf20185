"""Kernels where nothing can be written: compiled in memory, and said once."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.compiler import Flags

import epsilot
from epsilot.kernels import vectors
from epsilot.kernels.compiling import INLINE, KERNEL, KeyedCacheFile, njit

SOLVE = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import epsilot
    result = epsilot.solve([[0.0, 1.0], [2.0, 0.0]], method="small_simplex")
    from epsilot.applications import lattice
print(epsilot.__file__, result.value, *(str(x.message) for x in said), sep="\\n")
"""


@pytest.fixture
def open_folder():
    """Return a folder that other users can enter; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="permissions and users are Linux's here")
@pytest.mark.parametrize("has_cache_folder", [False, True])
def test_a_package_that_cannot_be_written_compiles_in_memory(open_folder, has_cache_folder):
    package = open_folder / "epsilot"
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(epsilot.__file__).parent, package, ignore=skipped)
    cache = open_folder / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    environment = {
        "HOME": "/nonexistent",
        "PYTHONPATH": str(open_folder),
        "PATH": os.environ["PATH"],
    }
    if has_cache_folder:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-c", SOLVE]
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root cannot be another user without setpriv")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    for folder, _, _ in os.walk(package):
        Path(folder).chmod(0o555)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd="/", check=False
        )
    finally:
        for folder, _, _ in os.walk(package):
            Path(folder).chmod(0o755)
    assert done.returncode == 0, done.stderr
    where, value, *said = done.stdout.splitlines()
    assert where == str(package / "__init__.py")
    assert float(value) == 0
    assert len(said) == (0 if has_cache_folder else 1)
    assert all("set NUMBA_CACHE_DIR to a folder" in line for line in said)
    assert any(cache.iterdir()) == has_cache_folder


CALLEE = """
from epsilot.kernels.compiling import KERNEL, njit


@njit(**KERNEL)
def inner():
    return {value}
"""
CALLER = """
from epsilot.kernels.callee import inner
from epsilot.kernels.compiling import KERNEL, njit


@njit(**KERNEL)
def outer():
    return inner()
"""


def test_an_edited_kernel_is_compiled_again_in_the_kernels_that_call_it(tmp_path):
    """Numba alone looks at the file of the caller, and would go on with the old callee.

    Other kernels are not compiled again, nor the same text in a new file.
    """
    package = tmp_path / "epsilot"
    shutil.copytree(
        Path(epsilot.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    kernels = package / "kernels"
    (kernels / "callee.py").write_text(CALLEE.format(value=1))
    (kernels / "middle.py").write_text("from epsilot.kernels.callee import inner")
    (kernels / "caller.py").write_text(CALLER.replace("callee", "middle"))
    (kernels / "other.py").write_text(CALLEE.format(value=3))
    variables = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    # Prints the answer, and how often each kernel was loaded from the cache.
    program = """
from epsilot.kernels import caller, other
print(caller.outer(), sum(caller.outer.stats.cache_hits.values()), end=" ")
print(other.inner(), sum(other.inner.stats.cache_hits.values()))
"""
    command = [sys.executable, "-c", program]

    def answer():
        environment = {**variables, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd="/", check=True
        ).stdout.strip()

    assert answer() == "1 0 3 0"
    (kernels / "caller.py").touch()
    assert answer() == "1 1 3 1"
    (kernels / "callee.py").write_text(CALLEE.format(value=20))
    assert answer() == "20 0 3 1"


def test_processes_that_compile_at_one_moment_do_not_take_each_others_code(tmp_path):
    first, second = (KeyedCacheFile(str(tmp_path), "kernel", "stamp") for _ in range(2))
    second._load_index = dict  # what the second process has read: nothing yet
    late = []
    first._save_data = lambda *file: late.append(file)
    first.save("types A", "code A")
    second.save("types B", "code B")
    for name, data in late:  # the first process writes its data last
        KeyedCacheFile._save_data(first, name, data)
    third = KeyedCacheFile(str(tmp_path), "kernel", "stamp")
    assert third.load("types A") in (None, "code A")
    assert third.load("types B") == "code B"


def test_kernels_have_keyed_cache_files():
    assert isinstance(vectors._exp_into._cache._cache_file, KeyedCacheFile)


@pytest.mark.parametrize("broken", ["*.nbi", "*.nbc"])
def test_a_cache_that_cannot_be_read_is_written_again(tmp_path, broken):
    cache = KeyedCacheFile(str(tmp_path), "kernel", "stamp")
    cache.save("types", "code")
    (file,) = tmp_path.glob(broken)
    file.write_bytes(file.read_bytes()[:-3])
    assert cache.load("types") is None
    cache.save("types", "code")
    assert cache.load("types") == "code"


# -- what is compiled ------------------------------------------------------------------------------

needs_compiler = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing compiles")
IN_MEMORY = {**KERNEL, "cache": False}


class Arrays(NamedTuple):
    x: np.ndarray
    y: np.ndarray


def read_only(x):
    x = x.view()
    x.flags.writeable = False
    return x


@njit(**{**INLINE, "cache": False})
def scaled_sum(x, factor):
    total = 0.0
    for i in range(x.size):
        total += factor * x[i]
    return total


@needs_compiler
def test_read_only_arrays_do_not_compile_another_kernel():
    @njit(**IN_MEMORY)
    def total(x, pair):
        return x[0] + pair.x[0] + pair.y[0]

    x = np.ones(3)
    for first in (x, read_only(x)):
        for y in (x, read_only(x)):
            assert total(first, Arrays(x, y)) == total(first, Arrays(y, x)) == 3
    assert len(total.signatures) == 1
    assert total.signatures[0][0].mutable


@needs_compiler
def test_a_function_that_kernels_call_is_compiled_once_and_not_for_python():
    @njit(**IN_MEMORY)
    def twice(x, n):
        return scaled_sum(x, 1) + scaled_sum(x, n) + scaled_sum(x, 2)

    assert twice(np.ones(3), 4) == 21
    assert scaled_sum.signatures == []
    assert len(scaled_sum._part.signatures) == 1  # a literal is an integer
    assert scaled_sum(np.ones(3), 2) == 6
    assert len(scaled_sum.signatures) == 1


@needs_compiler
def test_the_flags_of_kernels_equal_those_of_numba():
    flags = Flags()
    flags.nrt, flags.error_model = True, "numpy"
    quick = scaled_sum._compiler._customize_flags(flags)
    for x in (quick, quick.copy()):
        assert x.values() == flags.values()
        assert x == flags == x
        assert hash(x) == hash(flags)
    quick.nrt = False
    assert quick != flags
