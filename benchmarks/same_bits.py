"""Run ``python -m epsilot_lab same-bits``: compare bits across processes and threads."""

import sys

from epsilot_lab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["same-bits", *sys.argv[1:]]))
