"""What the processes of the tests do, and tasks for the runner; imported by them."""

import os
import time
from dataclasses import dataclass

from epsilot import parallel
from epsilot_lab.store import StudyInterrupted


def double(pipe, offset=0):
    """Answer numbers; die at a negative one, sleep at one above a hundred, tell the cache at 0."""
    while True:
        x = pipe.recv()
        if x < 0:
            os._exit(3)
        if x > 100:
            time.sleep(60)
        pipe.send(os.environ.get("EPSILOT_TEST", "unset") if x == 0 else 2 * x + offset)


@dataclass(frozen=True)
class Counted:
    """A task that says who solved it, with how many threads."""

    number: int
    is_timed: bool = False
    fault: str = ""
    seconds: float = 1.0

    @property
    def identity(self):
        return {"number": self.number}

    @property
    def label(self):
        return f"number {self.number}"

    @property
    def variant(self):
        return "counted"

    def warm_up(self):
        os.environ["EPSILOT_WARM"] = f"{int(os.environ.get('EPSILOT_WARM', '0')) + 1}"

    def line(self):
        if self.fault == "interrupted":
            raise StudyInterrupted
        if self.fault == "died":
            os._exit(5)
        if self.fault:
            raise ValueError(self.fault)
        return {
            **self.identity,
            "pid": os.getpid(),
            "threads": parallel.available(),
            "blas": os.environ.get("OMP_NUM_THREADS"),
        }
