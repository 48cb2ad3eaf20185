"""``python -m epsilot`` is the command ``epsilot``."""

from .cli import main

main()
