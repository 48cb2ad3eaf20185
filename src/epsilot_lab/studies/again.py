"""Solve stored lines of the paper's experiments again, and compare operations and loops.

    python -m epsilot_lab again docs/results --sample 100             # compare a random sample
    python -m epsilot_lab again docs/results fig1 table1 --replace    # put new lines for old ones

A sample is drawn evenly from all experiments, methods and stops. With ``--replace`` lines of the
installed code are left out, so that the same command continues after Ctrl-C or ``--minutes``.
Lines of digits that were read from a file need that file (``--digits``).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from epsilot import parallel

from ..document import markdown_row
from ..environment import numerics
from ..instances import AUTHORS
from ..paper import (
    ablation,
    color_transfer,
    expectations,
    image_tasks,
    method_map,
    two_moons,
)
from ..paper.numpy_pdasmd import NAME, NumpyTask
from ..store import Line, Store, Task
from . import methods

#: Fields that do not depend on the machine; those that a line has are compared.
COUNTS = (
    "operations",
    "certificate_operations",
    "n_iter",
    "loops",
    "has_ended",
    "errors",
    "after",
    "steps",
    "kept",
)


def _image(line: Line, data: str) -> Task:
    given = line["given"]
    if line["method"] == NAME:
        words = given["batch_size"], given.get("inner_loops")
        return NumpyTask(data, line["side"], line["seed"], line["eps"], *words)
    fields = {name: line[name] for name in image_tasks.KEY[1:6]}
    options = tuple(given.items())
    return image_tasks.priced(
        image_tasks.ImageTask(data, **fields, options=options, is_timed=line["is_timed"])
    )


def _transfer(line: Line) -> Task:
    is_script = line["method"] == color_transfer.SCRIPT
    kind = color_transfer.ScriptTask if is_script else color_transfer.TransferTask
    return kind.of_line(line)


def _ablation(line: Line) -> Task:
    if line["variant"].startswith(ablation.MOMENTUM):
        return ablation.MomentumTask.of_line(line)
    return ablation.AblationTask.of_line(line)


def _method(line: Line) -> Task:
    target, setting = (tuple(sorted(line[name].items())) for name in ("target", "setting"))
    return methods.MethodTask(line["problem"], line["n"], line["seed"], target, setting)


#: Folder -> the fields that identify its lines, and the task of a line.
EXPERIMENTS: dict[str, tuple[tuple[str, ...], Callable[[Line], Task]]] = {
    "fig1": (image_tasks.KEY, lambda line: _image(line, line["data"])),
    "table1": (image_tasks.KEY, lambda line: _image(line, line["data"])),
    "table2": (two_moons.KEY, two_moons.MoonTask.of_line),
    "two-moons": (two_moons.KEY, two_moons.MoonTask.of_line),
    "color-transfer": (color_transfer.KEY, _transfer),
    "ablation": (ablation.KEY, _ablation),
    "expectations": (expectations.KEY, expectations.ExpectationTask.of_line),
    "map": (method_map.KEY, method_map.MapTask.of_line),
    "section6": (methods.KEY, _method),
}
#: Data that need no file.
BUNDLED = tuple(prefix + name for prefix in ("", AUTHORS) for name in ("synthetic", "mnist"))


@dataclass(frozen=True)
class OldLine:
    """A stored line and its experiment."""

    folder: str
    line: Line

    @property
    def group(self) -> Hashable:
        """The experiment, method and stop, over which samples are even."""
        setting = self.line.get("setting", {}).get("method")
        return self.folder, self.line.get("method") or setting, self.line.get("stop")

    @property
    def seconds(self) -> float:
        """What it took."""
        return float(self.line.get("seconds") or self.line.get("processor") or 0.0)

    @property
    def is_current(self) -> bool:
        """Whether the installed code solved it."""
        return bool(self.line["versions"].get("numerics") == numerics())

    @property
    def order(self) -> tuple[Hashable, ...]:
        """Short lines first; timed ones last, those of one problem in turns."""
        if self.line.get("is_timed"):
            return (1, self.line["data"], self.line["n"], self.line["seed"], self.line["B"])
        return (0, self.seconds)

    @property
    def is_bundled(self) -> bool:
        """Whether its data need no file."""
        return self.line.get("data", BUNDLED[0]) in BUNDLED

    def again(self, digits: str = "") -> Line:
        """Solve it with the installed code, on one thread; digits are those of a file."""
        if self.is_bundled:
            task = EXPERIMENTS[self.folder][1](self.line)
        else:
            prefix = AUTHORS if str(self.line["data"]).startswith(AUTHORS) else ""
            task = _image(self.line, prefix + digits)
        with parallel.limit(1):
            return task.line()


def differing(old: Line, new: Line) -> list[str]:
    """Return the fields among COUNTS in which two lines differ."""
    return [name for name in COUNTS if old.get(name) is not None and old[name] != new.get(name)]


def sample(lines: Sequence[OldLine], count: int, seed: int) -> list[OldLine]:
    """Draw lines, as evenly as possible from all groups."""
    draws = random.Random(seed)
    groups: dict[Hashable, list[OldLine]] = {}
    for line in lines:
        groups.setdefault(line.group, []).append(line)
    for own in groups.values():
        draws.shuffle(own)
    rounds = max(map(len, groups.values()), default=0)
    order = list(groups.values())
    draws.shuffle(order)
    return [own[k] for k in range(rounds) for own in order if k < len(own)][:count]


def solved(
    lines: Sequence[OldLine], deadline: float, digits: str, stores: dict[str, Store] | None
) -> Iterator[tuple[OldLine, Line]]:
    """Yield each line with its repetition, until the time is over; store it if asked to."""
    for old in lines:
        if time.monotonic() > deadline:
            return
        new = old.again(digits)
        if stores is not None:
            stores[old.folder].append(new)
        yield old, new


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m epsilot_lab again")
    parser.add_argument("results", type=Path, nargs="?", default=Path("docs/results"))
    parser.add_argument("folders", nargs="*", help=", ".join(EXPERIMENTS))
    parser.add_argument("--sample", type=int, metavar="N", help="a random sample of N lines")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--most", type=float, default=float("inf"), metavar="S",
                        help="leave out lines that took more seconds")  # fmt: skip
    parser.add_argument("--untimed", action="store_true", help="leave out timed lines")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after that")
    parser.add_argument("--digits", default="", metavar="FILE", help="MNIST's training digits")
    parser.add_argument("--replace", action="store_true", help="store the new lines")
    options = parser.parse_args(argv)
    deadline = time.monotonic() + 60 * options.minutes
    paths = {
        name: options.results / name / "solves.jsonl"
        for name in options.folders or EXPERIMENTS
        if (options.results / name / "solves.jsonl").exists()
    }
    stores = {name: Store(path, EXPERIMENTS[name][0]) for name, path in paths.items()}
    old = [OldLine(name, line) for name, store in stores.items() for line in store]
    chosen = [
        x
        for x in old
        if x.seconds <= options.most
        and not (options.untimed and x.line.get("is_timed"))
        and (x.is_bundled or options.digits)
    ]
    if options.replace:
        chosen = [x for x in chosen if not x.is_current]
    if options.sample is not None:
        chosen = sample(chosen, options.sample, options.seed)
    chosen.sort(key=lambda x: x.order)
    same: dict[str, int] = dict.fromkeys(paths, 0)
    made: dict[str, int] = dict.fromkeys(paths, 0)
    for line, new in solved(chosen, deadline, options.digits, stores if options.replace else None):
        made[line.folder] += 1
        if fields := differing(line.line, new):
            texts = (f"{name} {line.line[name]} -> {new.get(name)}" for name in fields)
            place = ", ".join(map(str, (*cast("tuple[object, ...]", line.group), new.get("n"))))
            print(f"{place}: {'; '.join(texts)}", flush=True)
        else:
            same[line.folder] += 1
    if options.replace:
        for store in stores.values():
            store.save()
    print(markdown_row(("experiment", "lines", "solved again", "equal counts")))
    print(markdown_row(("---",) * 4))
    for name in paths:
        total = sum(x.folder == name for x in old)
        print(markdown_row((name, f"{total}", f"{made[name]}", f"{same[name]}")))
