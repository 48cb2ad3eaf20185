"""What a case comes to, and what counts as a proper refusal."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import epsilot

#: What the public functions may raise for input they cannot use.
DOCUMENTED = (epsilot.InvalidProblem, epsilot.UnknownMethod, epsilot.NotConverged)
LONGEST_SENTENCE = 600
#: Warnings that are meant, and those that users do not see (NumPy's, of broken archives).
QUIET = (epsilot.ConvergenceWarning, ResourceWarning)


@dataclass
class Outcome:
    """How a case ended, in the words the summary counts, and every defect it showed."""

    kind: str  # of problem, file or call
    method: str = "-"
    ending: str = "-"  # certified, stopped, refused ...
    label: str = ""  # the case in one line, for a reader
    defects: list[str] = field(default_factory=list)
    events: dict[str, int] = field(default_factory=dict)  # what the summary adds up: signals
    problems: int = 1  # solved or refused, each of them checked

    def blame(self, *defects: str) -> Outcome:
        """Add defects."""
        self.defects.extend(defects)
        return self


@dataclass(frozen=True)
class Answer:
    """What a call returned or raised, and the warnings it gave besides."""

    value: Any
    error: Exception | None
    warned: list[str]
    seconds: float = 0.0

    @property
    def is_refused(self) -> bool:
        """Whether the call was turned down as documented."""
        return self.error is not None and isinstance(self.error, (*DOCUMENTED, MemoryError))

    @property
    def defects(self) -> list[str]:
        """What is wrong with the way the call ended, whatever it returned."""
        found = [f"warned: {text}" for text in self.warned]
        if self.error is not None:
            found += error_defects(self.error)
        return found


def ask(call: Callable[..., Any], *args: Any, **keywords: Any) -> Answer:
    """Call a function of the library; every exception and warning is part of the answer."""
    value, error, began = None, None, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(*args, **keywords)
        except Exception as raised:
            error = raised
    texts = {
        f"{w.category.__name__}: {w.message}" for w in caught if not issubclass(w.category, QUIET)
    }
    return Answer(value, error, sorted(texts), time.perf_counter() - began)


def error_defects(error: Exception) -> list[str]:
    """Say what is wrong with an exception: its type, or its text."""
    is_raw_memory = isinstance(error, MemoryError) and type(error).__module__.startswith("numpy")
    if is_raw_memory or not isinstance(error, (*DOCUMENTED, MemoryError)):
        return [f"raised {type(error).__name__}: {first_line(error)}"]
    return sentence_defects(str(error))


def sentence_defects(text: str) -> list[str]:
    """Say why a text is not one sentence with a remedy: what was received; what is required."""
    if "\n" in text or not 20 <= len(text) <= LONGEST_SENTENCE:
        return [f"not one sentence: {text[:200]!r}"]
    if not re.search(r"[;:,(]", text):
        return [f"no remedy in the sentence: {text!r}"]
    return []


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return (str(error).splitlines() or [""])[0][:200]
