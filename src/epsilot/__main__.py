"""Run the command line: ``python -m epsilot``."""

from .cli import main

main()
