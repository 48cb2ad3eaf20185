"""
Transport of megapixel images
=============================

Two images have a million pixels each. Their matrix of l1 costs would have 10¹² entries. On a grid
epsilot stores no matrix, and the certificate takes no longer than the solution.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import epsilot

SIDE = 1024

# %%
# The images are smoothed noise at several scales. The second one has a hole.

rng = np.random.default_rng(2)


def clouds(*scales):
    """Return smooth positive noise."""
    field = sum(s * gaussian_filter(rng.normal(size=(SIDE, SIDE)), s * SIDE / 1024) for s in scales)
    return np.exp(field / field.std())


A, B = clouds(16, 40, 100), clouds(24, 60)
row, column = np.indices((SIDE, SIDE)) / SIDE - 0.5
B[np.hypot(row, column) < 0.22] *= 0.02
A, B = A / A.sum(), B / B.sum()

res = epsilot.solve_grid(A, B, eps=0.02 * 2 * (SIDE - 1), method="sinkhorn")
print(res)

# %%
# The potential is the price of mass at a pixel; mass flows down its slopes.

price = res.potentials[0].reshape(SIDE, SIDE)
figure, axes = plt.subplots(1, 3, figsize=(12, 4.4), layout="constrained")
for ax, image, title in ((axes[0], A, "from"), (axes[1], B, "to")):
    ax.imshow(image, cmap="magma", vmax=np.quantile(image, 0.995))
    ax.set_title(f"{title}: {SIDE} × {SIDE} pixels")
axes[2].imshow(price, cmap="RdBu_r")
axes[2].contour(price, levels=14, colors="0.2", linewidths=0.5)
share = res.gap / (2 * (SIDE - 1))
axes[2].set_title(f"price of mass; gap {share:.1%} of the largest cost")
for ax in axes:
    ax.set_axis_off()
plt.show()
