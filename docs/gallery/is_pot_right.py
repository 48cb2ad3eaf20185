"""
Is POT right?
=============

Bounds tell whether a solver's answer is optimal, POT's included. Two of its known problems are
``ot.emd`` with a few costs far above the others (POT issue 229, GUDHI issue 465, here with those
diagrams), and ``ot.unbalanced.mm_unbalanced``, which stops after a number of steps. A third one,
POT issue 190, no longer occurs: all of 100 problems with 5 and 960 points are solved.
"""

import matplotlib.pyplot as plt
import numpy as np
import ot

import epsilot
import epsilot.pot

TRIALS = 100
STEPS = [10, 30, 100, 300, 1000]

# %%
# Squared distances of two persistence diagrams, as GUDHI poses them. The last points are far away.
X = np.array([[2.232, 2.3099], [2.7921, 3.5327], [0.9424, 4.0825], [0.5228, 0.0]])
Y = np.array([[5.7253, 18.13], [3.6722, 21.666], [14.937, 51.438], [2.8168, 0.0]])
a = np.array([1.0, 1, 1, 1, 4])
far = 10.0 ** np.arange(2, 17)
theirs, ours = [], []
for z in far:
    X[3, 1] = Y[3, 1] = z
    M = np.zeros((5, 5))
    M[:4, :4] = np.abs(X[:, None] - Y).max(axis=2) ** 2
    M[:4, 4], M[4, :4] = ((np.diff(D)[:, 0] / 2) ** 2 for D in (X, Y))
    theirs.append(ot.emd2(a, a, M))
    M[M > 1e3] = np.inf  # pairs that no good plan uses are forbidden instead
    ours.append(epsilot.solve(M, a, a, rtol=1e-9))
lower = [result.lower_bound for result in ours]

# %%
# With penalised marginals, compare the cost of POT's plans with the optimum.
x = np.linspace(0, 1, 60)
C = (x[:, None] - x) ** 2
r, s = (w / w.sum() for w in np.random.default_rng(0).random((2, 60)) + 0.1)
best = epsilot.pot.unbalanced.mm_unbalanced(r, s, C, 1.0, log=True)[1]
plans = [ot.unbalanced.mm_unbalanced(r, s, C, 1.0, numItermax=k) for k in STEPS]
upper = [epsilot.certify(C, r, s, plan=P, unbalanced=1.0).upper for P in plans]

moved = []
for seed in range(TRIALS):
    P, Q = (np.random.default_rng([seed, k]).random((n, 2)) for k, n in ((0, 5), (1, 960)))
    moved.append(ot.emd([], [], ot.dist(P, Q)).sum())

figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
axes[0].plot(far, theirs, "o-", color="#1f5fa8", label="ot.emd2")
axes[0].plot(far, lower, color="#c0392b", label="proved optimum")
axes[0].set(xscale="log", xlabel="coordinate of the far point", ylabel="cost")
axes[1].plot(STEPS, upper, "o-", color="#1f5fa8", label="ot.unbalanced.mm_unbalanced")
axes[1].axhline(best["lower_bound"], color="#c0392b", label="lower bound of epsilot.pot")
axes[1].set(xscale="log", yscale="log", xlabel="numItermax (1000 by default)", ylabel="cost")
_ = [ax.legend(loc=f"upper {side}") for ax, side in zip(axes, ("left", "right"), strict=True)]
plt.show()
