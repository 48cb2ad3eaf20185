"""
Partial matching with outliers
==============================

A heart and a bent copy of it each have outliers. Balanced transport must also send the outliers
somewhere, and distorts the matching of the shapes. With ``mass`` only the cheapest share is moved.
The slope ``mass_price`` of the cost changes where the shapes are matched and the outliers begin.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

N = 150
STRAYS = 50
SHARES = [0.1, 0.25, 0.4, 0.55, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0]

rng = np.random.default_rng(1)
t = np.linspace(0, 2 * np.pi, N, endpoint=False)
heart = np.column_stack(
    [
        np.sin(t) ** 3,
        (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 16,
    ]
)
bent = heart * 1.12 + np.column_stack([0.16 * np.sin(3 * heart[:, 1]), 0.1 * heart[:, 0]])
X = np.vstack([heart, rng.uniform([-2.5, -1.5], [-1.6, 1.5], (STRAYS, 2))])
Y = np.vstack([bent, rng.uniform([1.6, -1.5], [2.5, 1.5], (STRAYS, 2))])

# %%
# Solve once per share. Tangents of slope ``mass_price`` are lower bounds for every other share.

runs = {s: epsilot.solve_sample(X, Y, mass=s, rtol=1e-6) for s in SHARES}
share = SHARES[np.argmin([abs(s - N / (N + STRAYS)) for s in SHARES])]
print(runs[share])

# %%
# Every line shows mass that moves. Hollow points stay.

figure, axes = plt.subplots(
    1, 3, figsize=(13, 4), width_ratios=[1.45, 1.45, 1], layout="constrained"
)
for ax, s, title in ((axes[0], 1.0, "all mass"), (axes[1], share, f"{share:.0%} of the mass")):
    plan = np.minimum(runs[s].plan * len(X), 1)
    for i, j in zip(*np.nonzero(plan > 1e-6), strict=True):
        ax.plot(*zip(X[i], Y[j], strict=True), color="#8a8a8a", lw=0.8, alpha=plan[i, j], zorder=0)
    for points, moved, color in ((X, plan.sum(1), "#1f5fa8"), (Y, plan.sum(0), "#c0392b")):
        faces = [color if m > 0.5 else "white" for m in moved]
        ax.scatter(*points.T, s=15, c=faces, edgecolors=color, lw=0.9)
    ax.set(xticks=[], yticks=[], aspect="equal", title=f"{title}: cost {runs[s].value:.4f}")
values = np.array([runs[s].value for s in SHARES])
prices = np.array([runs[s].mass_price for s in SHARES])
for s, value, price in zip(SHARES, values, prices, strict=True):
    axes[2].axline((s, value), slope=price, color="#1f5fa8", lw=0.6, alpha=0.4)
axes[2].plot(SHARES, values, "o-", color="#c0392b", ms=4, label="cost, proved to 1e-6")
axes[2].axvline(N / (N + STRAYS), color="#8a8a8a", ls="--", lw=1, label="points of the shapes")
axes[2].set(xlabel="share of the mass that moves", xlim=(0, 1.02), ylim=(-0.1, values[-1] * 1.05))
axes[2].legend(frameon=False, loc="upper left")
plt.show()
