"""Run ``python -m epsilot_lab campaign``: fuzz the library (docs/campaign.md)."""

import sys

from epsilot_lab.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["campaign", *sys.argv[1:]]))
