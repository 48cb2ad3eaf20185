"""Signals that ask a run to end, turned into a flag so that no step is torn."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import FrameType

# The public function turns numbers into enumerations and back, at ten times the cost.
_set_handler = signal._signal.signal  # type: ignore[attr-defined]
_BOTH = int(signal.SIGINT), int(signal.SIGTERM)


def _signals() -> tuple[int, ...]:
    """Return the signals that ask a run to end; SIGTERM of a worker process is its parent's."""
    is_own = multiprocessing.parent_process() is None
    return _BOTH if is_own or callable(signal.getsignal(signal.SIGTERM)) else _BOTH[:1]


class _Flag:
    """Whether a signal has come; its handler puts those back that were there before."""

    __slots__ = ("before", "has_come")

    def __init__(self) -> None:
        self.before: dict[int, object] = {}
        self.has_come = False

    def is_set(self) -> bool:
        """Tell whether a signal has come."""
        return self.has_come

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note the signal; the next one is not ours."""
        self.has_come = True
        self.restore()

    def restore(self) -> None:
        """Put back the handlers that were there before."""
        for number, handler in self.before.items():
            _set_handler(number, handler)


#: The flag of the outermost run that heeds signals.
_flag: ContextVar[_Flag | None] = ContextVar("epsilot_interrupted", default=None)


class _Graceful:
    """The context of a run that heeds signals; a class, since a generator takes twice as long."""

    __slots__ = ("flag", "token")

    def __init__(self) -> None:
        self.flag = _flag.get() or _Flag()
        self.token: Token[_Flag | None] | None = None

    def __enter__(self) -> Callable[[], bool]:
        is_main = threading.current_thread() is threading.main_thread()
        if _flag.get() is None and is_main:
            for number in _signals():
                self.flag.before[number] = _set_handler(number, self.flag.handle)
            self.token = _flag.set(self.flag)
        return self.flag.is_set

    def __exit__(self, *error: object) -> None:
        if self.token is not None:
            _flag.reset(self.token)
            self.flag.restore()


def graceful_interrupts() -> _Graceful:
    """Turn the first Ctrl-C or SIGTERM into a flag, so that no step is torn; the second one raises.

    Runs inside a run (those of a start) look at the same flag.
    """
    return _Graceful()
