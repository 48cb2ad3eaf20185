"""What the summary of Figure 1 says beside its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..judging import SHARE, SHARE_AT_EACH
from ..store import Line
from .fig1_curves import certified_eps

INTRODUCTION = (
    "Optimal transport between pairs of images under the l1 distance of pixels over its maximum: "
    "operations until an ε-solution is found, against the number n of pixels and the batch size "
    "B. A comparison is made on pairs, the same images and seed for both methods. It holds if it "
    f"goes the way of the claim in {SHARE:.0%} of all pairs and, at every n, in "
    f"{SHARE_AT_EACH:.0%} of its pairs; it does not hold if the opposite does; else it is "
    "undecided. A slope is judged by its 95 % interval, two-sided. A claim of the paper is "
    "counted once, and holds only if all its tests do. This page was made from `solves.jsonl`, "
    "one line a solve, by"
)
CONSTANTS_EXPLAINED = (
    "The two constants: the paper's Lemma 2 and Section 2.3 have L̄ = 5/η for the l∞ norm. The "
    "row terms are smooth with 1/η already (the variance of a softmax is at most ‖u‖∞²), so that "
    "the theorem covers L̄ = 1/η, which takes √5 = 2.24 times fewer outer loops. The code that "
    "the authors made public has 1/η, so that the published curves may be those of 1/η; the "
    "paper does not say. Both are drawn, and every comparison is made with both."
)
RULES = (
    'The two rules: under "one criterion" every method runs the paper\'s Appendix C, η = '
    "ε/(4 log n), smoothed marginals, and stops when the plan that it would round violates them "
    'by at most ε\'/2 and f + φ is at most ε/4. Under "own rule" APDAGD and AAM have that of '
    "their own papers: η = ε/(3 log n), and a stop when rounding adds at most ε/6 and the duality "
    "gap is at most ε/6. The other methods' papers have Appendix C's rule."
)
DIRECTIONS = (
    "The paper concludes that AAM, Sinkhorn and Stochastic Sinkhorn need fewer operations than "
    "PDASMD. It leaves out APDAGD, PDASGD and APDRCD, which are in the same panels; which way "
    "each goes is below, and not counted as a claim."
)
BATCHES = (
    "Why the slope depends on where it begins: an outer loop of n/B inner steps costs about "
    "(27 + 14/B) n² operations, since the vectors v, y and z are updated once a step, whatever B "
    "is. From B = 1 to 2 that takes 17 % off a loop, from 16 to 32 only 2 %. Outer loops grow as "
    "√B; operations grow more slowly, most of all with B = 1 among the points, and approach √B "
    "for large B."
)
TIMES = (
    "Why the two codes differ in panels d and h: the paper's experiments ran in NumPy, where an "
    "inner step is a dozen calls with a price of their own, about a microsecond each, which a "
    "batch shares among its rows. A vectorised NumPy version of the same algorithm, on the same "
    "random draws, is timed beside the compiled kernel. The kernel pays nothing for a call, so "
    "that it has nothing to share: its time grows with B as its outer loops do."
)
CERTIFICATE = (
    "The paper makes no claim for this stop. The same statements are tested, since this is what "
    "a user of the library pays: a method chooses its η, starts warm, takes the constants that "
    "are proved to be sharp, and stops as soon as the gap is proved to be within ε. The "
    "operations of the proofs are included. "
)
REFERENCE = (
    "Medians of operations on the synthetic images under the paper's stop beside those of "
    "verified prototypes (3 or 5 pairs of images, ε = 0.05)."
)


def accuracies(lines: Sequence[Line]) -> str:
    """Say how small the certified ε are beside the optima."""
    own = [line for line in lines if line["stop"] == "certificate" and not line["is_timed"]]
    texts = []
    for eps in certified_eps(own):
        shares = [eps / line["value"] for line in own if line["eps"] == eps]
        middle, least, most = np.median(shares), min(shares), max(shares)
        texts.append(
            f"ε = {eps:g} is {middle:.1%} of the cost in the median ({least:.1%} to {most:.1%})"
        )
    return f"{'; '.join(texts)}." if texts else ""
