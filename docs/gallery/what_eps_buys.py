"""
What ε buys
===========

The bounds of one run converge, and a larger tolerance ends the run sooner. Below are the plans of
three tolerances. A less accurate plan is blurred, and costs at most ε more than the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

N = 70
SOURCE, TARGET = "#1f5fa8", "#c0392b"
TARGETS = (0.2, 0.02, 0.002)

rng = np.random.default_rng(3)
angle = rng.uniform(0, 2 * np.pi, N)
X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(N, 2))
Y = 0.35 * rng.normal(size=(N, 2))
M = ((X[:, None] - Y) ** 2).sum(axis=2)

# %%
# An entropic method has a history of bounds; exact methods have only one pair.

runs = {eps: epsilot.solve(M, eps=eps, method="pdasmd") for eps in TARGETS}
for eps, run in runs.items():
    print(f"eps = {eps:<6} proved gap {run.gap:.5f}, {run.work.operations:.2g} operations")

# %%
# Draw the bounds against operations, and the three plans.

figure = plt.figure(figsize=(11, 7), layout="constrained")
axes = figure.subplot_mosaic([["bounds"] * 3, list(TARGETS)], height_ratios=[1, 1.25])
history = runs[TARGETS[-1]].history
work, upper, lower = np.array([(r.operations, r.upper, r.lower) for r in history]).T
ax = axes["bounds"]
ax.fill_between(work, lower, upper, color=SOURCE, alpha=0.15, lw=0)
ax.plot(work, upper, color=TARGET, marker=".", label="cost of the plan")
ax.plot(work, lower, color=SOURCE, marker=".", label="lower bound")
ax.set(xscale="log", xlabel="operations", ylabel="transport cost", ylim=(0.26, 0.52))
ax.set_xlim(work[0] / 1.5, work[-1] * 1.1)
ax.legend(loc="lower right", frameon=False)
for eps, run in runs.items():
    ax.axvline(run.work.operations, color="0.4", lw=0.8, ls=":")
    ax.text(run.work.operations, 0.51, f"ε = {eps} ", ha="right", va="top", rotation=90)
    panel = axes[eps]
    for i, j in zip(*np.nonzero(run.plan > 0.01 / N), strict=True):
        share = min(N * run.plan[i, j], 1)
        panel.plot(*zip(X[i], Y[j], strict=True), color="0.25", lw=1.8 * share, alpha=0.9)
    panel.scatter(*X.T, s=16, color=SOURCE, lw=0, zorder=2)
    panel.scatter(*Y.T, s=16, color=TARGET, lw=0, zorder=2)
    panel.set_aspect("equal")
    panel.set_axis_off()
    panel.set_title(f"ε = {eps}: cost {run.value:.4f}, proved to {run.gap:.4f}", fontsize=10)
plt.show()
