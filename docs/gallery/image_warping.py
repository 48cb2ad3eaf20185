"""
Image warping
=============

A letter is interpolated to another along the optimal plan between their ink: squared distances on a
grid, without a matrix, and with a certificate. Half way, the ink has a shape of its own. It is not
a blend of the two letters.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from scipy.ndimage import gaussian_filter

import epsilot

SIDE = 96


def letter(text):
    """Return the ink of a letter on a square grid."""
    glyph = TextPath((0, 0), text, size=100, prop={"family": "DejaVu Serif", "weight": "bold"})
    outlines = [polygon for polygon in glyph.to_polygons() if len(polygon) > 3]
    low, high = (end(np.concatenate(outlines), axis=0) for end in (np.min, np.max))
    y, x = (np.indices((SIDE, SIDE)) + 0.5) / SIDE - 0.5
    at = (low + high) / 2 + 1.25 * (high - low).max() * np.column_stack([x.ravel(), -y.ravel()])
    inside = sum(Path(polygon).contains_points(at) for polygon in outlines) % 2
    return gaussian_filter(inside.reshape(SIDE, SIDE).astype(float), 0.7)


# %%
# One call returns the plan as a list of arcs between pixels.

A, B = letter("e"), letter("ε")
res = epsilot.solve_grid(A, B, metric="sqeuclidean", rtol=1e-6, normalize=True)
print(res)
arcs = res.plan_operator.tosparse().tocoo()
rng = np.random.default_rng(0)
here, there = (np.stack(np.divmod(x, SIDE), axis=1) for x in (arcs.row, arcs.col))


def at_time(t):
    """Return the picture of all ink at one moment of its way; a pixel's ink fills the pixel."""
    where = (1 - t) * here + t * there + rng.uniform(-0.5, 0.5, (32, len(here), 2))
    bins, ink = [np.arange(SIDE + 1) - 0.5] * 2, np.tile(arcs.data, 32) / 32
    return gaussian_filter(np.histogram2d(*where.reshape(-1, 2).T, bins, weights=ink)[0], 0.8)


# %%
# The upper row follows the plan. The lower row fades one image into the other.

figure, axes = plt.subplots(2, 6, figsize=(11, 4), layout="constrained")
for column, t in zip(axes.T, np.linspace(0, 1, 6), strict=True):
    faded = (1 - t) * A / A.sum() + t * B / B.sum()
    for ax, picture, name in zip(column, (at_time(t), faded), ("plan", "faded"), strict=True):
        ax.imshow(picture, cmap="inferno", vmax=1.6 / (A > 0.5).sum())
        ax.set(xticks=[], yticks=[], ylabel=name if t == 0 else "")
    column[0].set_title(f"t = {t:.1f}", fontsize=10)
plt.show()
