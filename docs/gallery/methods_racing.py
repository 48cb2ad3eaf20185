"""
Compare methods
===============

The certified gap is drawn against operations on two of the paper's synthetic images. Every method
starts without a warm start, and stops at a gap of 0.3 % of the largest cost or after one second.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair

SIDE = 12
SECONDS = 1.0

a, b = (image.ravel() for image in synthetic_pair(SIDE, 5))
M = grid_cost((SIDE, SIDE))

# %%
# Compare the methods of the registry, except those of one step and those for other problems.

racing = [m for m in epsilot.methods() if m.family != "exact" and m.costs == "any"]
limits = {"eps": 0.003, "max_seconds": SECONDS, "on_limit": "ignore"}
runs = {m: epsilot.solve(M, a, b, method=m.name, **limits) for m in racing}

# %%
# Each family of methods has a colour.

figure, ax = plt.subplots(figsize=(11, 6.4), layout="constrained")
families = list(dict.fromkeys(method.family for method in racing))
palette = dict(zip(families, plt.get_cmap("tab10").colors, strict=False))
order = sorted(racing, key=lambda method: runs[method].work.operations)
places = np.geomspace(*(runs[order[end]].work.operations for end in (0, -1)), len(order))
for method, place in zip(order, places, strict=True):
    run, color = runs[method], palette[method.family]
    work, gaps = np.array([(r.operations, r.gap) for r in run.history if r.operations]).T
    ax.plot(work, gaps, color=color, alpha=0.85)
    ax.plot(work[-1], gaps[-1], "o" if run.converged else "x", color=color)
    ax.plot([work[-1], place], [gaps[-1], 1.8e-4], color=color, lw=0.5, ls=":")
    ax.text(place, 1.6e-4, method.name, rotation=90, ha="center", va="top", color=color, fontsize=9)
for family in families:
    ax.plot([], [], color=palette[family], label=family)
ax.axhline(0.003, color="0.5", lw=0.8, ls=":")
ax.set(xscale="log", yscale="log", xlabel="operations", ylabel="proved gap, of the largest cost")
ax.set_ylim(5e-6, 0.5)
ax.legend(frameon=False, loc="lower left")
plt.show()
