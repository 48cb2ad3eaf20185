"""
PDASMD and its theory
=====================

The paper bounds the number of outer loops of its algorithm (Theorem 2). Runs of the published
procedure stay below the bound and have the predicted slopes: 1/ε in the accuracy, and √B in the
batch size.
"""

import matplotlib.pyplot as plt
import numpy as np

import epsilot
from epsilot import theory
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.problems.problem import make_problem
from epsilot.solvers.base import published_parameters

SIDE = 8
SEEDS = 3
EPS = [0.4, 0.2, 0.1, 0.05]
BATCHES = [1, 2, 4, 8, 16]

M = grid_cost((SIDE, SIDE))


def loops(eps, B, seed):
    """Return the outer loops that a run takes, and those that are proved to be enough."""
    a, b = (image.ravel() for image in synthetic_pair(SIDE, seed))
    run = epsilot.solve(M, a, b, eps=eps, method="pdasmd", stop="paper", batch_size=B, seed=seed)
    target, _ = published_parameters(make_problem(M, a, b), eps)
    return run.n_iter, theory.pdasmd_outer_loops(eps, 1.0, target.p, target.q, batch_size=B)


# %%
# Every point shows a run on a pair of the paper's synthetic images.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
sweeps = [
    (axes[0], "accuracy ε", EPS, -1.0, lambda eps, seed: loops(eps, 1, seed)),
    (axes[1], "batch size B", BATCHES, 0.5, lambda B, seed: loops(0.2, B, seed)),
]
for ax, label, values, slope, measure in sweeps:
    found = np.array([[measure(value, seed) for seed in range(SEEDS)] for value in values])
    taken, proved = found[..., 0], found[..., 1].mean(axis=1)
    fitted = np.polyfit(np.log(values), np.log(taken.mean(axis=1)), 1)[0]
    ax.plot(values, proved, color="#c0392b", lw=2, label="proved to be enough (corrected)")
    ax.plot(np.repeat(values, SEEDS), taken.ravel(), "o", color="#1f5fa8", label="taken")
    guide = np.array(values) ** slope
    guide *= np.exp(np.mean(np.log(taken.mean(axis=1) / guide)))
    ax.plot(values, guide, color="0.5", ls="--", label=f"slope {slope:g}")
    ax.set(xscale="log", yscale="log", xlabel=label, title=f"measured slope {fitted:.2f}")
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.set_yticks([100, 300, 1000, 3000, 10_000], ["100", "300", "1,000", "3,000", "10,000"])
    ax.minorticks_off()
    ax.legend(frameon=False)
axes[0].set_ylabel("outer loops")
plt.show()
