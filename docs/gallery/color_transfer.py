"""
Colour transfer
===============

Two photographs exchange their colours. A certified plan matches their palettes, and every pixel
moves like its nearest palette colours.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import epsilot

COLORS = 600

china, flower = (load_sample_image(name)[:, 60:580] for name in ("china.jpg", "flower.jpg"))
model = epsilot.ColorTransfer(n_colors=COLORS, eps=1e-3).fit(china, flower)
print(f"cost {model.cost_:.4f}, proved to {model.gap_:.1e}")

# %%
# The pictures show both directions. The right panel shows how the palette moves, by its red and
# blue values.

pictures = {
    "a temple": china,
    "in the colours of the flower": model.transform(china),
    "a flower": flower,
    "in the colours of the temple": model.inverse_transform(flower),
}
figure = plt.figure(figsize=(11, 5.6), layout="constrained")
axes = figure.subplot_mosaic("ABP;CDP", width_ratios=[1, 1, 1.15])
for key, (title, picture) in zip("ABCD", pictures.items(), strict=True):
    axes[key].imshow(picture)
    axes[key].set_title(title, fontsize=10)
    axes[key].set_axis_off()
source, reference = model.source_palette_, model.reference_palette_
arcs = model.result_.plan_operator.tosparse().tocoo()
ax = axes["P"]
for i, j in zip(arcs.row, arcs.col, strict=True):
    start, end = source.colors[i], reference.colors[j]
    ax.plot([start[0], end[0]], [start[2], end[2]], color=start, lw=0.5, alpha=0.5, zorder=0)
for palette, marker in ((source, "o"), (reference, "s")):
    size = 15 + 3000 * np.asarray(palette.weights)
    ax.scatter(palette.colors[:, 0], palette.colors[:, 2], s=size, c=palette.colors, marker=marker,
               edgecolors="0.2", lw=0.3)  # fmt: skip
ax.set(xlabel="red", ylabel="blue", title="the plan between both palettes", aspect="equal")
plt.show()
