"""What can go wrong, each with a sentence that says what to do."""

from __future__ import annotations

from typing import Any, TypeAlias

# A Result or a BatchResult, which are made in a later layer.
Answer: TypeAlias = Any


class InvalidProblem(ValueError):
    """The input does not describe a transport problem this call can solve."""


class InvalidBatch(InvalidProblem):
    """Some problems of a batch were refused; ``result`` holds the answers to the others."""

    def __init__(self, message: str, result: Answer) -> None:
        super().__init__(message)
        self.result = result


class TooLarge(InvalidProblem, MemoryError):
    """The call would need more memory than there is; nothing was allocated."""


class UnknownMethod(ValueError):
    """No method, or no option of it, has the given name."""


class NotConverged(RuntimeError):
    """A limit ended the run before the target; ``result`` is feasible and certified."""

    def __init__(self, message: str, result: Answer) -> None:
        super().__init__(message)
        self.result = result


class CertificateError(RuntimeError):
    """A certified bound contradicts another one: a bug, never a success."""


class ClusterError(RuntimeError):
    """The cluster that was to do the work is gone, or cannot do it; checkpoints are kept."""


class ConvergenceWarning(UserWarning):
    """A limit ended the run before the target was reached."""


class UnsavedWarning(UserWarning):
    """A file of a run could not be written; the run went on without it."""
