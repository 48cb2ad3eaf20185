"""Time the first call of a process: with an empty cache of compiled code, and with a filled one.

    python -m epsilot_lab first-calls [--calls "solve, n = 8" batch] [--warm FOLDER]
    python -m epsilot_lab first-calls --against FOLDER --rounds 3 --out docs/results/first-calls
    python -m epsilot_lab first-calls --functions        # what is compiled, function by function

Each call runs in fresh processes, from the start of Python to the answer: one with an empty cache
of compiled code, then one that finds it filled. Times are processor seconds, medians over rounds.
``--against`` takes turns with the src of another checkout. ``--warm`` takes a cache that is there
already.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import epsilot
from epsilot.files import write_atomically

#: Name -> the call that a process makes after the import; R draws an array.
CALLS = {
    "solve, n = 8": "epsilot.solve(R(8, 8))",
    "solve, n = 8, weights": "epsilot.solve(R(8, 9))",
    "solve, n = 1000": "epsilot.solve(R(1000, 1000))",
    "solve_sample, 10,000 points": "epsilot.solve_sample(R(10000, 2), R(10000, 2)**1.5)",
    "solve_grid, 16 x 16": "epsilot.solve_grid(R(16, 16), R(16, 16), normalize=True)",
    "solve_batch": "epsilot.solve_batch(R(3, 32, 32))",
    "pairwise": "epsilot.pairwise(R(4, 8), L, normalize=True)",
    "barycenter": "epsilot.barycenter(R(3, 8), L, normalize=True)",
    "sinkhorn": "epsilot.solve(R(32, 32), eps=0.1, method='sinkhorn')",
    "pdasmd": "epsilot.solve(R(32, 32), eps=0.1, method='pdasmd')",
}
TEXT = """# First calls

Processor seconds of fresh processes, from the start of Python to the answer: with an empty cache of
compiled code ("compiling"), and with a filled one ("afterwards"). *Before* is an older commit,
*now* this one; the ratio is that of the seconds with an empty cache. Medians of {n} rounds, in
which both take turns on one machine.

```sh
python -m epsilot_lab first-calls --against CHECKOUT/src {words} --out docs/results/first-calls
```

{table}
"""
SCRIPT = """
import time, warnings
import numpy as np, epsilot
from numba.core import event

class Listener(event.Listener):
    def on_start(self, event):
        opened.append([time.process_time(), 0.0])

    def on_end(self, event):
        began, inner = opened.pop()
        seconds = time.process_time() - began
        if opened:
            opened[-1][1] += seconds
        function = event.data["dispatcher"].py_func
        name = function.__module__ + "." + function.__qualname__
        functions.append((seconds - inner, len(opened), name))

opened, functions = [], []
event.register("numba:compile", Listener())
warnings.simplefilter("ignore")
R = np.random.default_rng(0).random
R = lambda *shape, random=R: random(shape)
L = np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
{call}
for seconds, depth, name in sorted(functions, reverse=True):
    print(f"{{seconds:.3f}} s  {{'  ' * depth}}{{name}}")
print(len(functions), time.process_time())
"""


def run(call: str, cache: str, source: str) -> list[str]:
    """Return what a process prints that makes a call with a checkout's library."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": source}
    command = [sys.executable, "-c", SCRIPT.format(call=CALLS[call])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def measure(call: str, source: str, warm: str | None) -> tuple[float, int, float]:
    """Return the seconds with an empty cache, the functions compiled, the seconds afterwards."""
    with tempfile.TemporaryDirectory() as empty:
        first = (run(call, empty, source) if warm is None else ["0 nan"])[-1].split()
        then = run(call, warm or empty, source)[-1].split()
    return float(first[1]), int(first[0]), float(then[1])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--warm", metavar="FOLDER")
    parser.add_argument("--against", metavar="FOLDER", help="src of another checkout")
    parser.add_argument("--rounds", type=int, default=1, help="processes of which to take medians")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="write the table there")
    parser.add_argument("--functions", action="store_true", help="list what is compiled")
    options = parser.parse_args(argv)
    own = str(Path(epsilot.__file__).parents[1])
    if options.functions:
        for call in options.calls:
            with tempfile.TemporaryDirectory() as empty:
                print(f"{call}:", *run(call, empty, own)[:-1], sep="\n", flush=True)
        return
    sources = [own] if options.against is None else [options.against, own]
    heads = ["compiling, s", "functions", "afterwards, s"]
    if options.against is not None:
        heads = [f"{when}: {head}" for when in ("before", "now") for head in heads] + ["ratio"]
    lines = ["| call | " + " | ".join(heads) + " |", "|---" + "|---" * len(heads) + "|"]
    print(*lines, sep="\n")
    for call in options.calls:
        rounds = [
            [measure(call, source, options.warm) for source in sources]
            for _ in range(options.rounds)
        ]
        lines.append(row(call, np.median(rounds, axis=0)))
        print(lines[-1], flush=True)
    if options.out is not None:
        words = " ".join(["--rounds", str(options.rounds)])
        text = TEXT.format(words=words, n=options.rounds, table="\n".join(lines))
        options.out.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out / "summary.md", lambda file: file.write(text.encode()))


def row(call: str, found: Any) -> str:
    """Return the row of a call from the medians of one checkout or of two."""
    cells = [x for cold, n, warm in found for x in (f"{cold:.1f}", f"{n:.0f}", f"{warm:.2f}")]
    if len(found) > 1:
        cells.append(f"{found[1][0] / found[0][0]:.2f}")
    return f"| {call} | " + " | ".join(cells) + " |"
