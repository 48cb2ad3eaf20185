"""
Flow on a graph
===============

Mass moves from the left to the right along the edges of a graph of near points. Two thirds of the
edges have a capacity, so that the flow spreads.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from scipy import sparse
from scipy.spatial import Delaunay

import epsilot

N_POINTS = 400

rng = np.random.default_rng(3)
X = rng.random((N_POINTS, 2)) * [2, 1]
triangles = Delaunay(X).simplices
edges = np.unique(
    np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])),
    axis=0,
)
lengths = np.linalg.norm(X[edges[:, 0]] - X[edges[:, 1]], axis=1)
edges, lengths = edges[lengths < 0.4], lengths[lengths < 0.4]
shape = N_POINTS, N_POINTS
G = sparse.coo_array((lengths, tuple(edges.T)), shape=shape)
limits = np.where(rng.random(len(edges)) < 2 / 3, 0.04, np.inf)
capacity = sparse.coo_array((limits, tuple(edges.T)), shape=shape)

# %%
# Move one bump of mass to the other.

a, b = (np.exp(-((X - centre) ** 2).sum(axis=1) / 0.02) for centre in ([0.3, 0.5], [1.7, 0.5]))
result = epsilot.solve_graph(G, a, b, capacity=capacity, directed=False, normalize=True)
print(f"{result.lower_bound:.6f} <= optimum <= {result.value:.6f}")

# %%
# The width of a line shows the flow along an edge.

flows = result.flows.tocoo()
figure, axes = plt.subplots(figsize=(9, 5.2), layout="constrained")
axes.add_collection(LineCollection(X[edges], colors="0.85", linewidths=0.6))
used = np.stack([X[flows.row], X[flows.col]], axis=1)
axes.add_collection(LineCollection(used, colors="tab:blue", linewidths=0.3 + 60 * flows.data))
axes.scatter(*X.T, s=1 + 2000 * a / a.sum(), color="tab:orange", label="mass before")
axes.scatter(*X.T, s=1 + 2000 * b / b.sum(), color="tab:green", label="mass after", alpha=0.6)
axes.set(aspect="equal", xticks=[], yticks=[], title="Minimum-cost flow with capacities")
axes.set_axis_off()
figure.legend(loc="outside lower center", ncols=2, frameon=False)
