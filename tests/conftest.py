"""Shared set-up: Hypothesis profiles, fixtures."""

import faulthandler
import functools
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Background jobs of a shell start with Ctrl-C ignored; tests send it to themselves and to children.
is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
if is_ignored and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The default profile draws the same examples in every run; `make explore` draws new ones. No check
# depends on the clock.
common = settings(
    deadline=None, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
n_explored = int(os.environ.get("EXPLORE_EXAMPLES", 500))
settings.register_profile("same_draws", common, max_examples=40, derandomize=True)
settings.register_profile("explore", common, max_examples=n_explored, derandomize=False)
settings.load_profile("same_draws")

# Hypothesis also draws constants of the modules that are loaded at that moment: examples would
# depend on the order of the tests.
if hasattr(providers, "_get_local_constants"):
    no_constants = providers._local_constants
    providers._get_local_constants = lambda: no_constants


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def forget_interrupts() -> None:
    """Let Ctrl-C of one test not end the next one."""
    interrupts = sys.modules.get("epsilot.engine.interrupts")
    if interrupts is not None:
        interrupts.forget_interrupts()


@pytest.fixture(autouse=True)
def let_torch_warn_always() -> None:
    """Let a warning of PyTorch come in every test that causes it, not once in a process."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_warn_always"):
        torch.set_warn_always(True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bound the time of each example in `make explore`, and print examples with every digit."""
    if config.getoption("--hypothesis-profile") != "explore":
        return
    np.set_printoptions(floatmode="unique", threshold=sys.maxsize)
    until = float(os.environ.get("EXPLORE_UNTIL", "inf"))
    hang_seconds = float(os.environ.get("EXPLORE_HANG_SECONDS", 300))
    for item in items:
        if getattr(item.obj, "is_hypothesis_test", False):
            handle = item.obj.hypothesis
            handle.inner_test = watched(handle.inner_test, until, hang_seconds)


def watched(test, until, hang_seconds):
    """Return a test whose examples end the process when they hang, and pass after ``until``."""
    has_failed = False

    @functools.wraps(test)
    def example(*args, **kwargs):
        nonlocal has_failed
        if time.time() > until and not has_failed:  # a failing example is still being simplified
            return
        faulthandler.dump_traceback_later(hang_seconds, exit=True)
        try:
            test(*args, **kwargs)
        except BaseException:
            has_failed = True
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()

    return example
