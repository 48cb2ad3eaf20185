"""Workers that misbehave, for the watchdog."""

import os
import time


def crash(pipe, folder):
    """Die on the first case, as after a segmentation fault."""
    pipe.recv()
    os.abort()


def hang(pipe, folder):
    """Take a case and never answer."""
    pipe.recv()
    time.sleep(600)


def answer(pipe, folder):
    """Answer every case at once."""
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send({"case": case.key, "ending": "certified"})
