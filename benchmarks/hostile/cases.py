"""All cases by name: a part, a number and a seed determine everything that is drawn."""

from __future__ import annotations

import time
import traceback
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from epsilot_lab.store import Line

from .outcome import Outcome, first_line

#: part -> module:function
PARTS = {
    "solves": "solves:solves",
    "scales": "scales:scales",
    "resume": "resume:resume",
    "kills": "kills:kills",
    "kinds": "kinds:kinds",
    "batches": "batches:batches",
    "barycenters": "barycenters:barycenters",
    "losses": "losses:losses",
    "audits": "audits:audits",
    "estimators": "estimators:estimators",
    "cluster": "cluster:cluster",
    "limits": "limits:limits",
    "places": "places:places",
    "abuse": "abuse:abuse",
    "commands": "commands:commands",
}


class Case(NamedTuple):
    """The ``number``-th case of a part."""

    part: str
    number: int
    seed: int = 0

    @property
    def key(self) -> str:
        """The name under which its line is kept, and by which it is run again."""
        return f"{self.part}-{self.number}" + (f"-{self.seed}" if self.seed else "")

    @property
    def identity(self) -> Line:
        """What distinguishes its line from all others."""
        return {"case": self.key}

    @classmethod
    def named(cls, text: str) -> Case:
        """Return the case with a name."""
        part, number, *seed = text.split("-")
        return cls(part, int(number), *map(int, seed))

    def generator(self) -> np.random.Generator:
        """Return the generator from which everything in the case is drawn."""
        return np.random.default_rng([self.seed, zlib.crc32(self.part.encode()), self.number])


def part_function(part: str) -> Callable[[np.random.Generator], Outcome]:
    """Return the function that runs cases of a part."""
    module, _, name = PARTS[part].partition(":")
    found: Callable[[np.random.Generator], Outcome] = getattr(
        import_module(f".{module}", __package__), name
    )
    return found


def run_case(case: Case) -> Line:
    """Run a case here and return its line; a failure of the campaign itself is a defect too."""
    began = time.perf_counter()
    try:
        with np.errstate(all="ignore"):  # ours; the library's warnings are recorded by `ask`
            outcome = part_function(case.part)(case.generator())
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"the check failed: {type(error).__name__}: {first_line(error)} ({where.name})"
        outcome = Outcome("-", ending="failed", defects=[text])
    return line_of(case, outcome, time.perf_counter() - began)


def line_of(case: Case, outcome: Outcome, seconds: float) -> Line:
    """Return what is stored of a case."""
    line: Line = {
        "case": case.key,
        "part": case.part,
        "kind": outcome.kind,
        "method": outcome.method,
        "ending": outcome.ending,
        "seconds": round(seconds, 3),
        "problems": outcome.problems,
    }
    if outcome.events:
        line["events"] = outcome.events
    if outcome.defects:
        line |= {"defects": outcome.defects, "label": outcome.label}
    return line
