"""
Domain adaptation of rotated moons
==================================

The target has the shape of the labelled source, rotated by 50 degrees. A classifier of the source
is wrong on the target. Trained on the transported source, it is right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import epsilot

N = 200
DEGREES = 50
COLORS = np.array(["#1f5fa8", "#c0392b"])

angle = np.radians(DEGREES)
turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
Xs, ys = make_moons(N, noise=0.05, random_state=0)
Xt, yt = make_moons(N, noise=0.05, random_state=1)
Xs, Xt = Xs - Xs.mean(axis=0), (Xt - Xt.mean(axis=0)) @ turn

# %%
# A small ``reg`` averages over targets that are nearly as good.

adapter = epsilot.DomainAdapter(reg=0.3).fit(Xs, Xt=Xt)
moved = adapter.transform(Xs)
print(adapter.result_)

# %%
# Decision regions are drawn before and after the move. Hollow points are the target; wrong ones
# are black.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharey=True)
x, y = np.meshgrid(np.linspace(-2.2, 2.2, 200), np.linspace(-1.8, 1.8, 200))
for ax, points, title in ((axes[0], Xs, "as it is"), (axes[2], moved, "moved")):
    model = SVC().fit(points, ys)
    side = model.predict(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    ax.contourf(x, y, side, levels=[-0.5, 0.5, 1.5], colors=list(COLORS), alpha=0.15)
    is_wrong = model.predict(Xt) != yt
    ax.scatter(*points.T, s=10, c=COLORS[ys], lw=0)
    ax.scatter(*Xt.T, s=22, facecolors="none", edgecolors=COLORS[yt], lw=0.8)
    ax.scatter(*Xt[is_wrong].T, s=12, color="black", lw=0)
    ax.set_title(f"{title}: {is_wrong.mean():.0%} of the target wrong")
for before, after, color in zip(Xs, moved, COLORS[ys], strict=True):
    axes[1].plot(*zip(before, after, strict=True), color=color, lw=0.6, alpha=0.7)
axes[1].scatter(*moved.T, s=10, c=COLORS[ys], lw=0)
axes[1].set_title("where transport moves them")
for ax in axes:
    ax.set(xticks=[], yticks=[], aspect="equal", xlim=(-2.2, 2.2), ylim=(-1.5, 1.5))
plt.show()
