"""
Exact transport of large point clouds
=====================================

Tens of thousands of points are transported at the least possible cost, without a matrix or
regularisation, and with a proof of optimality. Colours show directions, so that regions that move
together are visible.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb

import epsilot

N = 50_000
NIGHT = "#0b0e14"

rng = np.random.default_rng(1)
radius, arm = 1.15 * np.sqrt(rng.random(N)), rng.integers(0, 3, N)
angle = 2 * np.pi / 3 * arm + 2.6 * radius + 0.28 * rng.normal(size=N)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
turn, which = 2 * np.pi * rng.random(N), rng.integers(0, 5, N)
ring = 0.55 * np.column_stack([np.cos(2 * np.pi * which / 5), np.sin(2 * np.pi * which / 5)])
Y = ring + 0.42 * np.column_stack([np.cos(turn), np.sin(turn)]) + 0.025 * rng.normal(size=(N, 2))

# %%
# With ``rtol=1e-9`` the plan is exact.

res = epsilot.solve_sample(X, Y, rtol=1e-9)
print(res)
arcs = res.plan_operator.tosparse().tocoo()
X, Y = X[arcs.row], Y[arcs.col]

# %%
# The panels show the points before, half way, and after.

way = Y - X
hue = np.arctan2(way[:, 1], way[:, 0]) / (2 * np.pi) % 1
value = 0.45 + 0.55 * np.minimum(np.hypot(*way.T) / np.quantile(np.hypot(*way.T), 0.98), 1)
color = hsv_to_rgb(np.column_stack([hue, np.full_like(hue, 0.72), value]))
order = rng.permutation(len(X))
figure, axes = plt.subplots(1, 3, figsize=(12, 4.3), facecolor=NIGHT, layout="constrained")
for ax, t in zip(axes, (0.0, 0.5, 1.0), strict=True):
    if t == 0.5:
        some = order[:1500]
        ways = np.stack([X[some], Y[some]], axis=1)
        ax.add_collection(LineCollection(ways, colors=color[some], lw=0.4, alpha=0.35))
    ax.scatter(*(X + t * way)[order].T, s=1, c=color[order], lw=0, alpha=0.85)
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
    ax.set_axis_off()
title = f"{N:,} points, {arcs.nnz:,} arcs: a plan proved optimal to 9 digits"
figure.suptitle(title, color="#c9d1d9", fontsize=11)
plt.show()
