"""Run a study: ``python -m epsilot_lab <study> [options]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

#: name -> sentence; the module of a study has its name, with underscores.
STUDIES = {
    "methods": "compare methods and options, in operations",
    "races": "time epsilot beside other libraries",
    "sparse": "time sparse costs beside POT, OR-tools and networkx",
    "batches": "time batches of small problems beside loops over POT and SciPy",
    "priced": "compare penalties per point with linear programs by HiGHS",
    "barycenters": "compare barycentres with POT",
    "gromov": "compare Gromov-Wasserstein with POT and OTT-JAX",
    "gradients": "time gradients beside POT, GeomLoss and OTT-JAX",
    "large": "solve 100,000 points and large images",
    "growth": "measure how exact solves grow with n",
    "stages": "show where the time of auto goes, stage by stage",
    "pot-tests": "run the tests of POT and SciPy on our functions",
    "first-calls": "time the first call of a process, with and without compiling",
    "limits": "measure how late limits and signals end a call",
    "same-bits": "compare the bits of results across processes, threads and processors",
    "regret": "compare auto with the fastest method",
    "registry": "measure every method on one problem, for `epsilot methods`",
    "calibrate": 'fit the cost models behind method="auto"',
    "again": "solve stored lines of the paper's experiments again, and compare",
    "results": "list the versions that produced the published results",
    "gallery": "draw README's picture of 100,000 points",
    "campaign": "fuzz the library",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study that the first word names, or list all studies."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in STUDIES:
        if words and words[0] not in ("-h", "--help"):
            print(f"study {words[0]!r} is unknown; it must be one of these:", file=sys.stderr)
        for name, sentence in STUDIES.items():
            print(f"{name:16} {sentence}")
        return 0 if words and words[0] in ("-h", "--help") else 2
    folder = "fuzz" if words[0] == "campaign" else "studies"
    module = import_module(f".{folder}.{words[0].replace('-', '_')}", __package__)
    run: Callable[[list[str]], int | None] = module.main
    return run(words[1:]) or 0


if __name__ == "__main__":
    sys.exit(main())
