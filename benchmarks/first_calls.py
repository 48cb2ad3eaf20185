"""Run ``python -m epsilot_lab first-calls``: time the first call of a process."""

import sys

from epsilot_lab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["first-calls", *sys.argv[1:]]))
