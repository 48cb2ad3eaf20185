"""Time and peak memory to a verified accuracy beside POT, regot, OTT-JAX and GeomLoss.

python benchmarks/peers.py [--quick|--full] [--out DIR] ...   # the same as epsilot bench
"""

from __future__ import annotations

import sys

from epsilot import cli


def run() -> None:
    """Run the command with the arguments of this script."""
    sys.argv[1:1] = ["bench"]
    cli.main()


if __name__ == "__main__":
    run()
