"""
Nearest neighbours of digits
============================

Digits are distributions of ink on 8 × 8 pixels, and their distance is the transport cost between
them. One call solves all pairs exactly, and scikit-learn uses the matrix of distances.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import MDS

import epsilot

N = 300
QUERIES = 5

images, labels = load_digits(return_X_y=True)
images, labels = images[:N], labels[:N]
pixels = np.indices((8, 8)).reshape(2, -1).T
M = np.minimum(np.linalg.norm(pixels[:, None] - pixels, axis=2), 3.0)
H = images / images.sum(axis=1, keepdims=True)

# %%
# ``pairwise`` solves all pairs, and proves a bound on each error.

batch = epsilot.pairwise(H, M)
print(f"{len(batch.value):,} problems; largest gap {batch.gap.max():.1e}")
D = batch.to_matrix()

# %%
# The left panel shows digits with their nearest neighbours. The right one is a map that keeps the
# distances as well as a plane can.

figure = plt.figure(figsize=(12, 5.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[1, 1.25])
panels = left.subplots(QUERIES, 7)
for row, query in zip(panels, np.arange(QUERIES) * 2, strict=True):
    for ax, other in zip(row, np.argsort(D[query])[:7], strict=True):
        ax.imshow(images[other].reshape(8, 8), cmap="Greys")
        is_same = labels[other] == labels[query]
        ax.set(xticks=[], yticks=[])
        for edge in ax.spines.values():
            edge.set(color="#1f5fa8" if is_same else "#c0392b", lw=2 if other != query else 0)
left.suptitle("a digit, and the six that are nearest")
place = MDS(n_init=1, init="random", random_state=0, metric="precomputed").fit_transform(D)
ax = right.subplots()
for (x, y), label in zip(place, labels, strict=True):
    ax.text(x, y, str(label), color=plt.get_cmap("tab10")(label), ha="center", va="center",
            fontsize=9, weight="bold")  # fmt: skip
ax.set(xlim=1.05 * np.array([place[:, 0].min(), place[:, 0].max()]), xticks=[], yticks=[])
ax.set_ylim(1.05 * place[:, 1].min(), 1.05 * place[:, 1].max())
ax.set_title(f"{N} digits by transport distance")
plt.show()
