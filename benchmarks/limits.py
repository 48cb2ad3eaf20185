"""Run ``python -m epsilot_lab limits``: measure how late limits and signals end a call."""

import sys

from epsilot_lab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["limits", *sys.argv[1:]]))
