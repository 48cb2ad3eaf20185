"""SIGTERM ends a run, and a process whose run is stuck."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import epsilot
from epsilot.engine import interrupts
from epsilot.engine.interrupts import graceful_interrupts, watch_signals

COST = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

#: Foreign code that releases the lock of the interpreter and looks at no signal.
STUCK = """
import hashlib, threading
from epsilot.engine import interrupts
interrupts.FIRST_SECONDS, interrupts.SECOND_SECONDS = {seconds}
with interrupts.graceful_interrupts():
    interrupts.watch_signals()
    threading.Timer(0.5, print, ["ready"], {{"flush": True}}).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""

#: A run that SIGTERM ends, in a process that then goes on for longer than a stuck one may.
ENDED = """
import signal, time, types, numpy as np, epsilot
from epsilot.engine import interrupts
now, interrupts.FIRST_SECONDS = 0.0, 0.2
interrupts.time = types.SimpleNamespace(monotonic=lambda: now)  # stands still during the run
def stop(record):
    if record.n_iter > 1:  # runs of many steps are watched
        signal.raise_signal(signal.SIGTERM)
M = np.random.default_rng(0).random((9, 9))
found = epsilot.solve(M, method="sinkhorn", rtol=1e-9, callback=stop, on_limit="ignore")
time.sleep(1.0)
now = 1.0
time.sleep(1.0)
print(found.status.name)
"""

#: A process that is forked inside a run, and ended: its parent goes on.
FORKED = """
import os, signal, time
from epsilot.engine import interrupts
interrupts.FIRST_SECONDS = 0.2
is_there, say_so = os.pipe()
with interrupts.graceful_interrupts() as is_interrupted:
    interrupts.watch_signals()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
        os.write(say_so, b"!")
        while True:
            time.sleep(0.01)
    os.read(is_there, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    time.sleep(1.0)
    print(os.waitstatus_to_exitcode(status), is_interrupted())
"""


def started(code):
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], env=paths, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(
    ("seconds", "is_repeated"), [((3600, 0.1), True), ((0.1, 3600), False)], ids=["twice", "once"]
)
def test_sigterm_ends_a_process_whose_run_is_stuck(seconds, is_repeated):
    with started(STUCK.format(seconds=seconds)) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            for _ in range(600):
                if process.poll() is not None:
                    break
                time.sleep(0.2)
                if is_repeated:
                    process.send_signal(signal.SIGTERM)
            assert process.returncode == 128 + signal.SIGTERM
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("code", "said"), [(ENDED, "INTERRUPTED"), (FORKED, "7 False")], ids=["a run ends", "a child"]
)
def test_sigterm_does_not_end_a_process(code, said):
    with started(code) as process:
        assert process.stdout.read().strip() == said
    assert process.returncode == 0


def test_an_event_loop_is_still_told_of_signals():
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    before = signal.set_wakeup_fd(tell)
    try:
        with graceful_interrupts() as is_interrupted:
            watch_signals()
            signal.raise_signal(signal.SIGINT)
            assert is_interrupted()
        assert signal.set_wakeup_fd(tell) == tell
        assert os.read(told, 1)[0] == signal.SIGINT
    finally:
        signal.set_wakeup_fd(before)
        os.close(told)
        os.close(tell)


def test_nobody_is_told_of_signals_after_a_run():
    with graceful_interrupts():
        watch_signals()
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("solve", "is_watched"),
    [
        (lambda look: epsilot.solve(COST, method="sinkhorn", callback=look), True),
        (lambda look: epsilot.barycenter(np.eye(5), COST, rtol=0.1, callback=look), True),
        (lambda look: epsilot.solve(COST, callback=look), False),  # one step, at once
    ],
    ids=["many steps", "barycentre", "one step"],
)
def test_runs_of_many_steps_are_watched(solve, is_watched):
    seen = []

    def look(record):
        seen.append(signal.set_wakeup_fd(-1))
        signal.set_wakeup_fd(seen[-1])

    solve(look)
    assert (seen[-1] != -1) == is_watched


def interrupted_run(**keywords):
    """Solve a problem that Ctrl-C ends at its first certificate."""
    return epsilot.solve(
        np.random.default_rng(0).random((9, 9)),
        method="sinkhorn",
        rtol=1e-9,
        callback=lambda record: signal.raise_signal(signal.SIGINT),
        on_limit="ignore",
        **keywords,
    )


def test_a_second_ctrl_c_ends_a_script_that_catches_nothing(monkeypatch):
    assert interrupted_run().status.name == "INTERRUPTED"
    with pytest.raises(KeyboardInterrupt):
        interrupted_run()
    monkeypatch.setattr(interrupts, "AGAIN_SECONDS", 0.0)  # much later
    assert interrupted_run().status.name == "INTERRUPTED"


def test_the_warning_of_an_interruption_says_how_to_end_the_program():
    with pytest.warns(epsilot.ConvergenceWarning, match="Ctrl-C again within 5 s"):
        epsilot.solve(
            np.random.default_rng(0).random((9, 9)),
            method="sinkhorn",
            rtol=1e-9,
            callback=lambda record: signal.raise_signal(signal.SIGINT),
        )


INTERRUPTED = {
    "solve": lambda look, **more: epsilot.solve(
        COST, method="sinkhorn", rtol=1e-9, callback=look, **more
    ),
    "barycenter": lambda look, **more: epsilot.barycenter(
        np.eye(5), COST, method="anderson", rtol=1e-9, callback=look, **more
    ),
    "points": lambda look, **more: epsilot.barycenter_sample(
        [np.arange(9.0)[:, None] ** 2], 3, callback=look, **more
    ),
    "batch": lambda look, **more: epsilot.solve_batch(
        (look(None) or COST for _ in range(9)), **more
    ),
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_on_interrupt_raises_with_the_certified_answer(name):
    pressed = []

    def look(seen):
        if not pressed:
            pressed.append(seen)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(epsilot.Interrupted) as caught:
        INTERRUPTED[name](look, on_interrupt="raise")
    assert isinstance(caught.value, KeyboardInterrupt)
    result = caught.value.result
    assert np.all(result.lower_bound <= result.value + 1e-12) or name == "batch"
