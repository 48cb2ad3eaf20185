"""
Distances of persistence diagrams
=================================

A persistence diagram has a point (birth, death) for each hole of a shape. Two diagrams are compared
by a matching of their points, of which some vanish into the diagonal at their own price: the
distance to it. Here a noisy diagram is compared with the one that it came from. The few points far
from the diagonal find each other, and the noise near the diagonal vanishes.
"""

import matplotlib.pyplot as plt
import numpy as np

from epsilot.applications import persistence_distance

NOISE = 60

rng = np.random.default_rng(3)
true = np.array([[0.15, 0.72], [0.3, 0.95], [0.55, 0.9], [0.2, 0.4]])
births = rng.uniform(0.0, 0.95, NOISE)
noise = np.column_stack([births, births + rng.exponential(0.025, NOISE)])
seen = np.vstack([true + rng.normal(scale=0.02, size=true.shape), noise])

# %%
# The matching is exact, and the lower bound proves it. Rows are pairs; -1 is the diagonal.

found = persistence_distance(true, seen, order=1)
print(f"W_1 = {found:.6f}, proved at least {found.lower:.6f}")
pairs = found.matching
print(pairs[(pairs >= 0).all(axis=1)])

# %%
# Lines join matched points, and others with the points of the diagonal that are nearest to them.

figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
ax.plot([0, 1.05], [0, 1.05], color="#8a8a8a", lw=1)
for i, j in pairs:
    ends = [D[k] for D, k in ((true, i), (seen, j)) if k >= 0]
    ends += [np.full(2, ends[0].mean())] if len(ends) == 1 else []
    ax.plot(*np.transpose(ends), color="#c0392b" if min(i, j) >= 0 else "#b8b8b8", lw=1, zorder=0)
ax.scatter(*seen.T, s=14, color="#1f5fa8", label="with noise")
ax.scatter(*true.T, s=42, facecolors="none", edgecolors="#c0392b", label="true")
ax.set(xlabel="birth", ylabel="death", aspect="equal", title=f"distance {found:.4f}, exact")
ax.legend(frameon=False, loc="lower right")
plt.show()
