"""What is read off the lines of image solves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..store import Line

STOPS = {"paper": "the paper's stop", "certificate": "our certificate"}


def operations(line: Line) -> float | None:
    """Return the operations up to the stop, the test included if it is the certificate."""
    if line["operations"] is None:
        return None
    extra = line["certificate_operations"] if line["stop"] == "certificate" else 0
    return float(line["operations"] + extra)


def soundness(lines: Sequence[Line]) -> str:
    """Return how the solves ended, in one paragraph."""
    if not lines:
        return "No solve has been made."
    ended = [line for line in lines if line["has_ended"]]
    texts = [f"{len(ended)} of {len(lines)} solves ended by their stop rule."]
    groups = {
        "Under the certificate the certified gap": [
            line for line in ended if line["stop"] == "certificate"
        ],
        "Under the paper's stop the certified gap of the returned plan": [
            line for line in ended if line["stop"] == "paper" and "value_of" in line
        ],
        "In older lines under the paper's stop, which hold the best plan seen on the way, it": [
            line for line in ended if line["stop"] == "paper" and "value_of" not in line
        ],
    }
    for what, own in groups.items():
        if own:
            shares = [line["gap"] / line["eps"] for line in own]
            texts.append(
                f"{what} was {np.median(shares):.2g} ε in the median and at most "
                f"{max(shares):.2g} ε ({len(own)} solves)."
            )
    return " ".join(texts)
