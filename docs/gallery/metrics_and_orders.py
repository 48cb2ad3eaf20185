"""
Metrics and orders change the matching
======================================

The same sixty points are matched under four costs: three metrics, and three orders of the
Wasserstein distance. At order 8 the longest moves decide, so the matching avoids them. The circle,
diamond and square show which points each metric calls equally far.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

N = 60
COSTS = [("euclidean", 1), ("euclidean", 8), ("cityblock", 2), ("chebyshev", 2)]

rng = np.random.default_rng(4)
X = rng.uniform(0, 1, (N, 2))
Y = X + [0.25, 0.1] + 0.06 * rng.normal(size=(N, 2))

# %%
# ``wasserstein`` returns the distance W_p, with its proved interval. Its ``result`` has the plan.

distances = {
    (metric, p): epsilot.wasserstein(X, Y, metric=metric, p=p, rtol=1e-9) for metric, p in COSTS
}
for distance in distances.values():
    print(repr(distance))

# %%
# Lines show the matching. The outline in the corner is the unit circle of the metric.

angle = np.linspace(0, 2 * np.pi, 400)
ray = np.column_stack([np.cos(angle), np.sin(angle)])
LENGTHS = {
    "euclidean": np.linalg.norm(ray, axis=1),
    "cityblock": np.abs(ray).sum(axis=1),
    "chebyshev": np.abs(ray).max(axis=1),
}
figure, axes = plt.subplots(1, len(COSTS), figsize=(13, 3.6), layout="constrained")
for ax, ((metric, p), distance) in zip(axes, distances.items(), strict=True):
    for i, j in zip(*np.nonzero(distance.result.plan), strict=True):
        ax.plot(*zip(X[i], Y[j], strict=True), color="#8a8a8a", lw=1, zorder=0)
    ax.scatter(*X.T, s=14, color="#1f5fa8")
    ax.scatter(*Y.T, s=14, color="#c0392b")
    ax.plot(*(0.12 * ray / LENGTHS[metric][:, None] + [1.2, -0.05]).T, color="#2b2b2b", lw=1)
    ax.set(xticks=[], yticks=[], aspect="equal", title=f"{metric}, $W_{p}$ = {distance:.4f}")
plt.show()
