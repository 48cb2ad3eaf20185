"""Import the packages that every benchmark process needs, once, before forking.

POT imports each array library that is installed unless told not to; here it gets NumPy arrays.
"""

from __future__ import annotations

import os

for _backend in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW"):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{_backend}", "1")

import ot  # noqa: E402, F401

from epsilot import certify, solve  # noqa: E402, F401
