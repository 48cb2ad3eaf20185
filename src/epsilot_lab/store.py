"""Store solves as JSON lines, appended as they end, and define what a task is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Protocol, Self

from epsilot._types import Fields
from epsilot.engine.interrupts import graceful_interrupts
from epsilot.errors import InvalidProblem
from epsilot.files import write_atomically
from epsilot.version import NUMERICS, __version__

# -- the file ----------------------------------------------------------------------------------

#: First bytes of every line.
BEGINNING = b'{"'


Line = Fields


class Identified(Protocol):
    """Anything that a line can record."""

    @property
    def identity(self) -> Line:
        """The fields of its line that distinguish it from all others."""


class Store:
    """Lines by the fields that identify their solve; the file holds complete lines only.

    A last line that was cut short (the machine went down) is dropped. A last line that only lacks
    its line end is kept. Any other unreadable line is an error, since it was edited by hand. Of two
    lines of one solve the later one counts.

    Parameters
    ----------
    path
        The file, which need not exist yet.
    fields
        The fields of a line that identify its solve.
    """

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self.path = path
        self._fields = tuple(fields)
        self._lines: dict[str, Line] = {}
        if path.exists():
            self._read()

    def __contains__(self, task: Identified) -> bool:
        return self._key(task.identity) in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(list(self._lines.values()))

    def lines(self, tasks: Iterable[Identified]) -> list[Line]:
        """Return the lines of those tasks that are solved, in the order of the tasks."""
        return [self._lines[key] for key in self._keys(tasks)]

    def append(self, line: Line) -> None:
        """Append a line in one write, and flush it to the disk."""
        text = json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._lines[self._key(line)] = line

    def arrange(self, tasks: Iterable[Identified]) -> None:
        """Put the lines of the tasks first, in their order, so that equal runs give equal files."""
        wanted = self._keys(tasks)
        known = set(wanted)
        rest = sorted(key for key in self._lines if key not in known)
        self._lines = {key: self._lines[key] for key in wanted + rest}
        self.save()

    def save(self) -> None:
        """Write the file anew, one line per solve."""
        text = "".join(
            json.dumps(line, allow_nan=False, ensure_ascii=False) + "\n"
            for line in self._lines.values()
        )
        write_atomically(self.path, lambda file: file.write(text.encode()))

    def _key(self, line: Line) -> str:
        """Return the text under which a line is kept."""
        values = [_era(line[name]) if name == "version" else line[name] for name in self._fields]
        return json.dumps(values, sort_keys=True)

    def _keys(self, tasks: Iterable[Identified]) -> list[str]:
        """Return the keys of the tasks that have a line."""
        keys = (self._key(task.identity) for task in tasks)
        return [key for key in keys if key in self._lines]

    def _read(self) -> None:
        content = self.path.read_bytes()
        *texts, last = content.split(b"\n")
        for number, text in enumerate(texts, start=1):
            self._keep(text, number)
        if not last:
            return
        if _is_torn(last):
            self._check_own(last)
            kept = content[: -len(last)]
            write_atomically(self.path, lambda file: file.write(kept))
        else:
            self._keep(last, len(texts) + 1)
            write_atomically(self.path, lambda file: file.write(content + b"\n"))

    def _keep(self, text: bytes, number: int) -> None:
        try:
            line = json.loads(text)
            self._lines[self._key(line)] = line
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidProblem(
                f"{self.path}, line {number} is not a solve of this experiment ({error}); "
                "lines must be as they were written (delete the line or the file)"
            ) from error

    def _check_own(self, torn: bytes) -> None:
        """Reject a file of one unreadable line, unless it begins like a line."""
        if not self._lines and not torn.startswith(BEGINNING[: len(torn)]):
            raise InvalidProblem(
                f"{self.path} holds no solve of this experiment; a file of its lines, or none, is "
                "required (move it away, or choose another folder)"
            )


def read_lines(path: Path) -> list[Line]:
    """Return all lines of a file, of whatever experiment and version."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]


def _era(version: str) -> str:
    """Map a version to NUMERICS if its lines still count as solved."""
    return NUMERICS if _numbers(version) >= _numbers(NUMERICS) else version


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version, such as [0, 2, 0]."""
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def _is_torn(text: bytes) -> bool:
    """Tell whether a line was cut short: it is then no JSON."""
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


# -- tasks -------------------------------------------------------------------------------------


class StudyInterrupted(KeyboardInterrupt):
    """The user ended a run; the values it had reached are not a measurement."""


@contextmanager
def refuse_interrupted() -> Iterator[None]:
    """Raise ``StudyInterrupted`` at the end if Ctrl-C came, whatever the solve inside returned.

    A solve that is interrupted certifies what it has. That may suffice for its target, but it is
    not the result of an undisturbed run.
    """
    with graceful_interrupts() as is_interrupted:
        yield
    if is_interrupted():
        raise StudyInterrupted


class Expected(Protocol):
    """Properties of a solve that are known beforehand."""

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""

    @property
    def seconds(self) -> float:
        """Expected time."""

    @property
    def label(self) -> str:
        """A few words for the progress line."""


class Task(Expected, Protocol):
    """A solve that any process can run."""

    @property
    def is_timed(self) -> bool:
        """Tell whether its running time counts: it then runs alone on the machine."""

    @property
    def variant(self) -> Hashable:
        """The choices that decide which kernels are compiled."""

    def warm_up(self) -> None:
        """Solve something tiny of the same variant."""

    def line(self) -> Line:
        """Solve and return the line."""


class KeyedTask:
    """A task whose fields identify its line; nothing of it is compiled or timed, unless it says so.

    ``KEY`` names the fields, and ends with ``version``.
    """

    KEY: ClassVar[tuple[str, ...]]

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        own = {name: getattr(self, name) for name in self.KEY if name != "version"}
        own = {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}  # as JSON has it
        return {**own, "version": __version__} if "version" in self.KEY else own

    @classmethod
    def of_line(cls, line: Line) -> Self:
        """Return the task of a line."""
        lists = {name: line[name] for name in cls.KEY if name != "version"}
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in lists.items()})

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return ", ".join(str(value) for value in self.identity.values())

    @property
    def seconds(self) -> float:
        """Expected time; by default all tasks of a study are alike."""
        return 1.0

    @property
    def is_timed(self) -> bool:
        """Tell whether its running time counts."""
        return False

    def warm_up(self) -> None:
        """Compile nothing."""
