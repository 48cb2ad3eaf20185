"""Call long functions of other packages in a child process that can be killed.

Compiled code of other packages does not check deadlines (:mod:`epsilot.deadline`). The child
process is killed at the deadline, and exits by itself when its parent has exited.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
import threading
import time
from types import ModuleType
from typing import Any

from . import deadline

#: Frameworks that POT imports although its network simplex does not need them.
_UNUSED_BACKENDS = ("PYTORCH", "JAX", "TENSORFLOW", "CUPY")


def call(module: str, name: str, *args: Any, **keywords: Any) -> Any:
    """Return ``module.name(*args, **keywords)``, or raise ``OutOfTime`` at the deadline.

    If no process can be started, or if it fails, the function runs here without a deadline.
    """
    deadline.check()
    answer = _call_in_child((module, name, args, keywords)) if _is_python() else None
    if answer is None:
        return getattr(importlib.import_module(module), name)(*args, **keywords)
    return pickle.loads(answer)


def _is_python() -> bool:
    """Tell whether ``sys.executable`` is a Python interpreter."""
    is_frozen = getattr(sys, "frozen", False)
    return not is_frozen and "python" in os.path.basename(sys.executable or "").lower()


def _call_in_child(question: tuple[Any, ...]) -> bytes | None:
    """Return the pickled result of a child process, or None if it failed."""
    paths = os.pathsep.join(path for path in sys.path if path)
    without = {f"POT_BACKEND_DISABLE_{name}": "1" for name in _UNUSED_BACKENDS}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths} | without,
            start_new_session=True,  # only the parent receives Ctrl-C
        )
    except OSError:
        return None
    answers: list[bytes] = []

    def converse() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with process.stdin as pipe:
                pickle.dump(question, pipe, protocol=5)
            answers.append(process.stdout.read())
        except OSError:  # the child has exited
            pass

    thread = threading.Thread(target=converse, name="epsilot-process", daemon=True)
    with process:
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.05)  # seconds until the deadline is checked again
                deadline.check()
        except BaseException:
            process.kill()
            raise
        finally:
            thread.join()
    return answers[0] if answers and process.returncode == 0 else None


def _exit_after(parent: int) -> None:
    """Exit when the parent process has exited."""
    while os.getppid() == parent:
        time.sleep(0.5)  # seconds until the parent is checked again
    os._exit(1)


def _imported(module: str) -> ModuleType:
    """Import a module; import POT's simplex without its packages, which take 0.8 s to import."""
    spec = importlib.util.find_spec("ot") if module == "ot.lp.emd_wrap" else None
    if spec is not None and spec.submodule_search_locations:
        (folder, *_) = spec.submodule_search_locations
        for name in ("ot", "ot.lp"):
            package = ModuleType(name)
            package.__path__ = [os.path.join(folder, *name.split(".")[1:])]
            sys.modules[name] = package
        try:
            return importlib.import_module(module)
        except ImportError:
            del sys.modules["ot"], sys.modules["ot.lp"]
    return importlib.import_module(module)


def _answer() -> None:
    """Read a call from stdin, and write its result to stdout."""
    threading.Thread(target=_exit_after, args=(int(sys.argv[1]),), daemon=True).start()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # stdout carries the result only
    module, name, args, keywords = pickle.load(sys.stdin.buffer)
    found = getattr(_imported(module), name)(*args, **keywords)
    with out:
        pickle.dump(found, out, protocol=5)


if __name__ == "__main__":
    _answer()
