"""Time the first call of a process: with an empty cache of compiled code, and with a filled one.

python -m epsilot_lab first-calls [--calls solve exact batch] [--warm FOLDER]

Each call runs in fresh processes, from the start of Python to the answer: one with an empty cache
of compiled code, then one that finds it filled. ``--warm`` takes a cache that is there already.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

#: Name -> the call that a process makes after the import.
CALLS = {
    "solve": "epsilot.solve(M)",
    "exact": "epsilot.solve(M, method='exact')",
    "batch": "epsilot.solve_batch(M[None])",
    "sample": "epsilot.solve_sample(M[:, :2], M[:, 2:4], lazy=True)",
    "sinkhorn": "epsilot.solve(M, eps=0.1, method='sinkhorn')",
    "pdasmd": "epsilot.solve(M, eps=0.1, method='pdasmd')",
}
SCRIPT = """
import time
import numpy as np, epsilot
M = np.random.default_rng(0).random((32, 32))
{call}
print(time.process_time())
"""


def seconds(call: str, cache: str) -> float:
    """Return the processor seconds of one process that makes a call."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", SCRIPT.format(call=CALLS[call])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=list(CALLS))
    parser.add_argument("--warm", metavar="FOLDER")
    options = parser.parse_args(argv)
    print("| call | compiling, s | afterwards, s |\n|---|---|---|")
    for call in options.calls:
        with tempfile.TemporaryDirectory() as empty:
            cold = "–" if options.warm else f"{seconds(call, empty):.1f}"
            warm = seconds(call, options.warm or empty)
        print(f"| `{CALLS[call]}` | {cold} | {warm:.1f} |", flush=True)
