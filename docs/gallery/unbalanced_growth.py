"""
Unbalanced transport of growing colonies
========================================

Three colonies on a line drift. One grows, and one dies out. Balanced transport explains the growth
by mass that moves between colonies. ``unbalanced`` penalises created and lost mass, so that
colonies grow in place: smoothly with KL, and all or nothing with TV.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import epsilot

N = 240
PRICE = 0.02

x = (np.arange(N) + 0.5) / N
M = (x[:, None] - x) ** 2


def colonies(*parts):
    """Return a density with a bump (mass, place, width) for each part."""
    return sum(m * np.exp(-(((x - c) / w) ** 2)) / (w * N * np.sqrt(np.pi)) for m, c, w in parts)


a = colonies((0.45, 0.15, 0.035), (0.3, 0.53, 0.03), (0.25, 0.8, 0.03)) + 1e-6
b = colonies((0.4, 0.21, 0.04), (0.9, 0.88, 0.035)) + 1e-6

# %%
# The totals differ. The balanced problem scales both to 1, as if all colonies had grown alike.

runs = {
    "balanced": epsilot.solve(M, a, b, rtol=1e-3, normalize=True),
    "KL": epsilot.solve(M, a, b, rtol=1e-3, unbalanced=PRICE),
    "TV": epsilot.solve(M, a, b, rtol=1e-3, unbalanced=PRICE, unbalanced_type="tv"),
}
for name, run in runs.items():
    print(f"{name}: {run.plan.sum():.3f} of mass moves; value {run.value:.5f}, gap {run.gap:.1e}")

# %%
# Time runs upwards. Mass moves along straight lines, and grows or fades on its way.

figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained", sharey=True)
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    plan = run.plan
    left, found = plan.sum(axis=1), plan.sum(axis=0)
    i, j = np.nonzero(plan > 1e-9)
    film = np.zeros((N, N))
    for row, t in zip(film, np.linspace(0, 1, N), strict=True):
        size = plan[i, j] * ((1 - t) * a[i] / left[i] + t * b[j] / found[j])
        row += np.histogram((1 - t) * x[i] + t * x[j], N, (0, 1), weights=size)[0]
        row += (1 - t) * np.where(left < 1e-9, a, 0) + t * np.where(found < 1e-9, b, 0)
    film = np.sqrt(gaussian_filter(film, 1.5))
    ax.imshow(film, origin="lower", extent=(0, 1, 0, 1), aspect="auto", cmap="magma")
    ax.set(xlabel="place", xticks=[0, 0.5, 1], yticks=[0, 1])
    ax.set_title(f"{name}: {plan.sum():.2f} of mass moves")
axes[0].set(ylabel="time")
plt.show()
