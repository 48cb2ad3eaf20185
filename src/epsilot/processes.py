"""Call a long function of another package in a process of its own, which can be ended.

Compiled code of others does not look at deadlines. The process is killed when the time is up
(:mod:`epsilot.deadline`), and ends by itself when its parent has.
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

#: Seconds between two looks at the deadline, and at the parent.
LOOK_SECONDS, PARENT_SECONDS = 0.05, 0.5
#: Frameworks that POT imports, and its network simplex does not need.
_NOT_NEEDED = ("PYTORCH", "JAX", "TENSORFLOW", "CUPY")


def call(module: str, name: str, *args: Any, **keywords: Any) -> Any:
    """Return ``module.name(*args, **keywords)``, or raise ``OutOfTime`` when the time is up.

    Where no process can be started, or it fails, the function is called here and cannot be ended.
    """
    deadline.check()
    answer = _called_there((module, name, args, keywords)) if _is_python() else None
    if answer is None:
        return getattr(importlib.import_module(module), name)(*args, **keywords)
    return pickle.loads(answer)


def _is_python() -> bool:
    """Tell whether the program that runs is an interpreter that can be started again."""
    is_frozen = getattr(sys, "frozen", False)
    return not is_frozen and "python" in os.path.basename(sys.executable or "").lower()


def _called_there(question: tuple[Any, ...]) -> bytes | None:
    """Return the pickled answer of another process, or None if there is none."""
    paths = os.pathsep.join(path for path in sys.path if path)
    without = {f"POT_BACKEND_DISABLE_{name}": "1" for name in _NOT_NEEDED}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths} | without,
            start_new_session=True,  # Ctrl-C is for the parent
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
        except OSError:  # it has ended
            pass

    thread = threading.Thread(target=converse, name="epsilot-process", daemon=True)
    with process:
        thread.start()
        try:
            while thread.is_alive():
                thread.join(LOOK_SECONDS)
                deadline.check()
        except BaseException:
            process.kill()
            raise
        finally:
            thread.join()
    return answers[0] if answers and process.returncode == 0 else None


def _end_with(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _imported(module: str) -> ModuleType:
    """Import a module; of POT without its packages, which import everything in 0.8 s."""
    spec = importlib.util.find_spec("ot") if module == "ot.lp.emd_wrap" else None
    if spec is not None and spec.submodule_search_locations:
        (place, *_) = spec.submodule_search_locations
        for name in ("ot", "ot.lp"):
            package = ModuleType(name)
            package.__path__ = [os.path.join(place, *name.split(".")[1:])]
            sys.modules[name] = package
        try:
            return importlib.import_module(module)
        except ImportError:
            del sys.modules["ot"], sys.modules["ot.lp"]
    return importlib.import_module(module)


def _answer() -> None:
    """Call what is asked for on stdin, and write what it returns to stdout."""
    threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is no part of the answer
    module, name, args, keywords = pickle.load(sys.stdin.buffer)
    found = getattr(_imported(module), name)(*args, **keywords)
    with out:
        pickle.dump(found, out, protocol=5)


if __name__ == "__main__":
    _answer()
