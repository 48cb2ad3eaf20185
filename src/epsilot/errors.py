"""Exceptions and warnings of the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

# A vector of indices.
IndexArray: TypeAlias = Any
# A Result or a BatchResult, which later layers define.
Answer: TypeAlias = Any


class InvalidProblem(ValueError):
    """The input is not a transport problem that this call can solve."""


class InvalidBatch(InvalidProblem):
    """Some problems of a batch are invalid; ``result`` holds the results of the others."""

    def __init__(self, message: str, result: Answer) -> None:
        super().__init__(message)
        self.result = result


class Infeasible(InvalidProblem):
    """No plan exists on the allowed arcs, as a cut proves.

    All arcs of the sources of the cut lead to its targets, and these can take less mass than the
    sources have to send.
    """

    def __init__(self, message: str, sources: IndexArray, targets: IndexArray, excess: float):
        super().__init__(message)
        self.sources = sources  # indices of sources
        self.targets = targets  # indices of all targets that arcs lead to from them
        self.excess = excess  # mass that cannot be sent

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.sources, self.targets, self.excess)


class TooLarge(InvalidProblem, MemoryError):
    """The call needs more memory than is available; nothing was allocated."""


class MissingExtra(ImportError):
    """An optional package is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} requires {package}, which cannot be imported (run: pip install "
            f'"epsilot[{extra}]")'
        )


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run with ``on_interrupt="raise"``; ``result`` is its certified answer."""

    def __init__(self, message: str, result: Answer) -> None:
        super().__init__(message)
        self.result = result


class UnknownMethod(ValueError):
    """No method has the given name."""


class UnknownOption(InvalidProblem, UnknownMethod, TypeError):
    """The call has no argument, and the method no option, of the given name."""

    #: The unknown argument, and the known ones by all their names; None for options of a method.
    argument: str | None = None
    known: Mapping[str, str] | None = None


class NotConverged(RuntimeError):
    """A limit ended the run before the target; ``result`` is feasible and certified."""

    def __init__(self, message: str, result: Answer) -> None:
        super().__init__(message)
        self.result = result


class CertificateError(RuntimeError):
    """Two certified bounds contradict each other, which is a bug."""


class ClusterError(RuntimeError):
    """The cluster is lost, or cannot run the tasks; checkpoints are kept."""


class ConvergenceWarning(UserWarning):
    """A limit ended the run before the target was reached."""


class UnsavedWarning(UserWarning):
    """A file of a run could not be written; the run continued without it."""
