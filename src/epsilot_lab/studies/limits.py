"""Measure by how much a limit or an interruption is overrun, the final proof included.

    python -m epsilot_lab limits                     # max_seconds=3, and SIGINT after 2 s
    python -m epsilot_lab limits --only cloud --scale 0.5

The calls are those of the campaign's part ``limits``, which draws its limits. The overrun is
counted from the limit, or from the signal, to the return of the call, in seconds of the processor.
The requirement is at most max(1 s, 10 % of the limit).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from ..document import markdown_row
from ..fuzz.limits import CALLS, drawn, ended


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table of overruns."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="part of the names of the calls to run")
    parser.add_argument("--scale", type=float, default=1.0, help="multiple of the sizes")
    parser.add_argument("--limit", type=float, default=3.0, help="max_seconds")
    parser.add_argument("--signal", type=float, default=2.0, help="seconds before SIGINT")
    options = parser.parse_args(argv)
    print(markdown_row(["call", "ended by", "after, s", "status", "over, s", "bounds"]))
    print(markdown_row(["---"] * 6))
    for name in (name for name in CALLS if options.only in name):
        for way, seconds in (("max_seconds", options.limit), ("SIGINT", options.signal)):
            call = drawn(name, np.random.default_rng(5), options.scale)
            late, answer = ended(call, way, seconds, n_threads=None)
            over = "ended before" if late is None else f"{late:.2f}"
            status, bounds = "KeyboardInterrupt", ""
            if answer is not None and answer.value is None:
                status = type(answer.error).__name__
            elif answer is not None:
                lower, value = (np.sum(x) for x in (answer.value.lower_bound, answer.value.value))
                codes = getattr(answer.value, "status", ())
                status = codes.name if hasattr(codes, "name") else "a batch"
                bounds = f"{lower:.4g} .. {value:.4g}"
            print(markdown_row([name, way, f"{seconds:g}", status, over, bounds]), flush=True)
