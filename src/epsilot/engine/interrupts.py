"""Signals that ask a run to end, turned into a flag so that no step is torn.

Python handles signals between its own instructions only. A second thread therefore sees
SIGTERM too, and ends the process if the run does not end by itself.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import cache
from types import FrameType

# The public function turns numbers into enumerations and back, at ten times the cost.
_set_handler = signal._signal.signal  # type: ignore[attr-defined]
_set_wakeup = signal._signal.set_wakeup_fd  # type: ignore[attr-defined]
#: Seconds that a run has to end after a first and after a second SIGTERM, before the process does.
FIRST_SECONDS, SECOND_SECONDS = 10.0, 1.0
#: Seconds after a run that Ctrl-C ended in which the next Ctrl-C ends the program.
AGAIN_SECONDS = 5.0
#: The sentence that says so.
AGAIN = (
    f"Press Ctrl-C again within {AGAIN_SECONDS:g} s to end the program, or pass "
    "on_interrupt='raise'."
)
#: Message to the watcher: a run that SIGTERM has reached has ended.
_ENDED = b"\0"
_NO_WATCHER = -1
_BOTH = int(signal.SIGINT), int(signal.SIGTERM)


def _signals() -> tuple[int, ...]:
    """Return the signals that ask a run to end; SIGTERM of a worker process is its parent's."""
    is_own = multiprocessing.parent_process() is None
    return _BOTH if is_own or callable(signal.getsignal(signal.SIGTERM)) else _BOTH[:1]


def _is_main() -> bool:
    """Tell whether this thread may handle signals."""
    return threading.current_thread() is threading.main_thread()


class _LastInterrupt:
    """When Ctrl-C last ended a run of this process."""

    at = -math.inf

    def is_recent(self) -> bool:
        """Tell whether Ctrl-C ended a run a few seconds ago."""
        return time.monotonic() - self.at < AGAIN_SECONDS


_last_interrupt = _LastInterrupt()


def forget_interrupts() -> None:
    """Let the next Ctrl-C end a run only, whenever the last one came."""
    _last_interrupt.at = -math.inf


class _Flag:
    """Whether a signal has come; its handler puts those back that were there before."""

    __slots__ = ("before", "has_come", "watcher")

    def __init__(self) -> None:
        self.before: dict[int, object] = {}
        self.has_come = False
        self.watcher = _NO_WATCHER

    def is_set(self) -> bool:
        """Tell whether a signal has come."""
        return self.has_come

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Note the signal; the next one is not ours, nor is Ctrl-C soon after that of a run."""
        self.restore()
        handler = self.before.get(number)
        if number == signal.SIGINT and _last_interrupt.is_recent() and callable(handler):
            handler(number, frame)
        self.has_come = True
        if number == signal.SIGINT:
            _last_interrupt.at = time.monotonic()

    def restore(self) -> None:
        """Put back the handlers that were there before."""
        for number, handler in self.before.items():
            _set_handler(number, handler)

    def watch(self) -> None:
        """Register the watcher of signals, unless an event loop has registered another one."""
        self.watcher = _watcher(os.getpid())
        before = _set_wakeup(self.watcher)
        if before != _NO_WATCHER:
            _set_wakeup(before)
            self.watcher = _NO_WATCHER

    def unwatch(self) -> None:
        """Tell the watcher that the run has ended."""
        if self.watcher != _NO_WATCHER:
            _set_wakeup(_NO_WATCHER)
            if self.has_come:
                os.write(self.watcher, _ENDED)


@cache
def _watcher(pid: int) -> int:
    """Start the watcher of a process; return the pipe by which it is told of signals.

    Where there are no threads, or signals are not those of POSIX, no watcher is registered.
    """
    if os.name == "nt":
        return _NO_WATCHER
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    try:
        threading.Thread(target=_watch, args=(told,), name="epsilot-signals", daemon=True).start()
    except RuntimeError:
        return _NO_WATCHER
    os.register_at_fork(before=_pause, after_in_parent=_go_on)
    return tell


def _pause() -> None:
    """Remove the watcher while a process forks: signals of the child are not its parent's."""
    flag = _flag.get()
    if flag is not None and flag.watcher != _NO_WATCHER and _is_main():
        _set_wakeup(_NO_WATCHER)


def _go_on() -> None:
    """Tell the watcher of signals again."""
    flag = _flag.get()
    if flag is not None and flag.watcher != _NO_WATCHER and _is_main():
        _set_wakeup(flag.watcher)


def _watch(pipe: int) -> None:
    """Wait for SIGTERM, then for the end of the run; end the process if that does not come."""
    ends = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while ends is None or time.monotonic() < ends:
            if not selector.select(None if ends is None else ends - time.monotonic()):
                continue
            number = os.read(pipe, 1)
            if number == _ENDED:
                ends = None
            elif number[0] == signal.SIGTERM:
                left = FIRST_SECONDS if ends is None else SECOND_SECONDS
                ends = min(time.monotonic() + left, ends or math.inf)
    os._exit(128 + signal.SIGTERM)


#: The flag of the outermost run that heeds signals.
_flag: ContextVar[_Flag | None] = ContextVar("epsilot_interrupted", default=None)


class _Graceful:
    """The context of a run that heeds signals; a class, since a generator takes twice as long."""

    __slots__ = ("flag", "token")

    def __init__(self) -> None:
        self.flag = _flag.get() or _Flag()
        self.token: Token[_Flag | None] | None = None

    def __enter__(self) -> Callable[[], bool]:
        if _flag.get() is None and _is_main():
            for number in _signals():
                self.flag.before[number] = _set_handler(number, self.flag.handle)
            self.token = _flag.set(self.flag)
        return self.flag.is_set

    def __exit__(self, *error: object) -> None:
        if self.token is not None:
            _flag.reset(self.token)
            self.flag.unwatch()
            self.flag.restore()


def watch_signals() -> None:
    """End the process on SIGTERM if the run does not end; runs call this when they take long."""
    flag = _flag.get()
    if flag is not None and flag.watcher == _NO_WATCHER and _is_main():
        flag.watch()


def graceful_interrupts() -> _Graceful:
    """Turn the first Ctrl-C or SIGTERM into a flag, so that no step is torn; the second one raises.

    A Ctrl-C soon after a run that Ctrl-C ended raises at once, in whatever run it comes, so that
    a script of many runs can be ended.

    SIGTERM ends a process whose run is stuck, when it comes again or 10 s after it came. Runs
    inside a run (those of a start) look at the same flag.
    """
    return _Graceful()
