"""Signals that ask a run to end, turned into a flag so that no step is torn."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

# The public function turns numbers into enumerations and back, at ten times the cost.
_set_handler = signal._signal.signal  # type: ignore[attr-defined]

#: The flag of the outermost run that heeds signals.
_flag: ContextVar[threading.Event | None] = ContextVar("epsilot_interrupted", default=None)


def _signals() -> list[signal.Signals]:
    """Return the signals that ask a run to end; SIGTERM of a worker process is its parent's."""
    is_own = multiprocessing.parent_process() is None
    if is_own or callable(signal.getsignal(signal.SIGTERM)):
        return [signal.SIGINT, signal.SIGTERM]
    return [signal.SIGINT]


@contextmanager
def graceful_interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a flag, so that no step is torn; the second one raises.

    Runs inside a run (those of a start) look at the same flag.
    """
    flag = _flag.get()
    if flag is not None or threading.current_thread() is not threading.main_thread():
        yield (flag or threading.Event()).is_set
        return
    flag = threading.Event()
    before: dict[signal.Signals, object] = {}

    def restore() -> None:
        for number, handler in before.items():
            _set_handler(number, handler)

    def handler(number: int, frame: FrameType | None) -> None:
        flag.set()
        restore()

    token = _flag.set(flag)
    try:
        for number in _signals():
            before[number] = _set_handler(number, handler)
        yield flag.is_set
    finally:
        restore()
        _flag.reset(token)
