"""Run in other interpreters, processes, threads, locales and users: the bits are the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import epsilot

from .problems import CaseOutcome, Rng, pick

SOURCE = Path(epsilot.__file__).resolve().parents[1]
#: Problems solved in every place.
COUNT = 12
NOBODY = 65534
CODE = "import json; from epsilot_lab.fuzz.places import *; print(json.dumps({call}))"
METHODS = ("auto", "sinkhorn", "apdagd", "exact", "restricted_simplex", "pdasmd")


def digest(seed: int, k: int) -> str:
    """Solve the k-th small problem of a seed and return a hash of the whole result."""
    rng = np.random.default_rng([seed, k])
    n, m = (int(x) for x in rng.integers(2, 15, 2))
    M, a, b = rng.random((n, m)), *(0.1 + rng.random(x) for x in (n, m))
    kinds: tuple[dict[str, Any], ...] = (
        {"method": METHODS[k % len(METHODS)]},
        {"reg": 0.1},
        {"mass": 0.5},
        {"unbalanced": 0.3},
        {"unbalanced": 0.3, "unbalanced_type": "tv"},
    )
    words = kinds[0] if k < len(METHODS) else kinds[1 + k % 4]
    keywords = {**words, "max_iter": 200, "on_limit": "ignore", "n_threads": 1}
    result = epsilot.solve(M, a / a.sum(), b / b.sum(), **keywords)
    parts = (np.array([result.value, result.lower_bound]), result.plan, *result.potentials)
    return hashlib.sha256(b"".join(x.tobytes() for x in parts)).hexdigest()


def digests(seed: int) -> list[str]:
    """Solve all problems of a seed."""
    return [digest(seed, k) for k in range(COUNT)]


def places(rng: Rng) -> CaseOutcome:
    """Solve the same problems here and in another place, and compare every bit."""
    place = pick(rng, {name: share for name, (share, _) in PLACES.items()})
    seed = int(rng.integers(2**31))
    outcome = CaseOutcome(place, label=f"seed {seed}", problems=COUNT)
    expected = digests(seed)
    try:
        found = PLACES[place][1](seed)
    except PermissionError:  # another user may not run this interpreter
        outcome.ending = "not possible here"
        return outcome
    except Exception as error:
        outcome.ending = "raised"
        return outcome.blame(f"{place}: {type(error).__name__}: {str(error)[-300:]}")
    outcome.ending = "solved"
    wrong = [k for k in range(COUNT) if found[k] != expected[k]]
    return outcome.blame(*([f"{place}: other bits of problems {wrong}"] if wrong else []))


def child(seed: int, *flags: str, **more: Any) -> list[str]:
    """Solve in another interpreter."""
    variables = {"PYTHONPATH": str(SOURCE), **more.pop("env", {})}
    environment = {**os.environ, **variables}
    for name in more.pop("without", ()):
        environment.pop(name, None)
    call = more.pop("call", f"digests({seed})")
    command = [sys.executable, *flags, "-c", CODE.format(call=call)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:])
    return list(json.loads(done.stdout.splitlines()[-1]))


def pooled(method: str, seed: int) -> list[str]:
    """Solve in a process that is forked or spawned, which workers of the campaign may not do."""
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(digests, seed).result()


def in_threads(seed: int) -> list[str]:
    """Solve in eight threads at once."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda k: digest(seed, k), range(COUNT)))


def in_asyncio(seed: int) -> list[str]:
    """Solve from coroutines, in the loop's threads and in the loop itself."""

    async def solve_all() -> list[str]:
        half = [asyncio.to_thread(digest, seed, k) for k in range(COUNT // 2)]
        there = await asyncio.gather(*half)
        return [*there, *(digest(seed, k) for k in range(COUNT // 2, COUNT))]

    return asyncio.run(solve_all())


def unprivileged(seed: int) -> list[str]:
    """Solve as nobody, who may write nowhere: neither beside the sources nor at home."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        user = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
        without = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        variables = {"HOME": f"{folder}/none", "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        return child(seed, env=variables, without=without, cwd=folder, **user)


#: place -> its share, and how the problems are solved there
PLACES: dict[str, tuple[float, Any]] = {
    "-O": (1, lambda seed: child(seed, "-O")),
    "-OO": (3, lambda seed: child(seed, "-OO")),
    "fork": (2, lambda seed: child(seed, call=f"pooled('fork', {seed})")),
    "spawn": (1, lambda seed: child(seed, call=f"pooled('spawn', {seed})")),
    "threads": (3, in_threads),
    "asyncio": (2, in_asyncio),
    "Turkish locale": (1, lambda seed: child(seed, env={"LC_ALL": "tr_TR.UTF-8"})),
    "POSIX locale": (1, lambda seed: child(seed, env={"LC_ALL": "C", "PYTHONUTF8": "0"})),
    "another hash seed": (1, lambda seed: child(seed, env={"PYTHONHASHSEED": str(seed)})),
    "nothing writable": (0.2, unprivileged),
}
