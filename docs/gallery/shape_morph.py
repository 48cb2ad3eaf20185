"""
Interpolation between four shapes
=================================

Barycentres of four shapes are computed for weights that vary over a square. Each is a histogram
with a proof that no other is better by more than the relative gap.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot

SIDE = 48
STEPS = 4
RTOL = 0.05

y, x = (np.indices((SIDE, SIDE)) + 0.5) / SIDE - 0.5
radius, angle = np.hypot(x, y), np.arctan2(y, x)
shapes = [
    radius < 0.35,
    np.maximum(abs(x), abs(y)) < 0.3,
    radius < 0.24 + 0.14 * np.cos(5 * angle),
    abs(radius - 0.33) < 0.08,
]
images = [shape / shape.sum() for shape in shapes]

# %%
# The weights of a panel are bilinear in its row and column.

results = {}
for i, s in enumerate(np.linspace(0, 1, STEPS)):
    for j, t in enumerate(np.linspace(0, 1, STEPS)):
        w = [(1 - s) * (1 - t), (1 - s) * t, s * (1 - t), s * t]
        results[i, j] = epsilot.barycenter_grid(images, w, metric="sqeuclidean", rtol=RTOL)
corners = [(i, j) for i in (0, STEPS - 1) for j in (0, STEPS - 1)]
gaps = [r.gap / r.lower_bound for place, r in results.items() if place not in corners]
print(f"{len(results)} barycentres; largest relative gap {max(gaps):.2%}")

# %%
# The corners show the four shapes.

figure, axes = plt.subplots(STEPS, STEPS, figsize=(6.4, 6.4), layout="constrained")
for place, result in results.items():
    axes[place].imshow(result.barycenter, cmap="magma")
    axes[place].set(xticks=[], yticks=[])
plt.show()
