"""
Gradient flow of transport losses
=================================

Each step moves every point along its own gradient, times the number of points. The losses are the
exact cost, the entropic cost, which shrinks the cloud, and the debiased Sinkhorn divergence, which
does not.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import epsilot.torch

N = 500
STEPS = [0, 2, 5, 10, 20]
REG = 0.2
LOSSES = {
    "exact": epsilot.torch.transport_cost,
    f"entropic, reg = {REG:g}": lambda x, y: epsilot.torch.transport_cost(x, y, reg=REG, tol=1e-5),
    f"divergence, reg = {REG:g}": lambda x, y: epsilot.torch.divergence(x, y, REG, tol=1e-5),
}


def moons(n, rng):
    """Return points of two half circles."""
    angle, is_upper = np.pi * rng.random(n), np.arange(n) % 2 == 0
    x = np.where(is_upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(is_upper, np.sin(angle), 0.5 - np.sin(angle))
    return torch.tensor(np.column_stack((x, y)) + 0.05 * rng.normal(size=(n, 2)))


def flow(loss, start, target):
    """Yield the cloud and the loss after each number of steps that is shown."""
    x = start.clone().requires_grad_()
    for step in range(STEPS[-1] + 1):
        value = loss(x, target)
        if step in STEPS:
            yield x.detach().numpy().copy(), value.item()
        (slope,) = torch.autograd.grad(value, x)
        x = (x - 0.15 * len(x) * slope).detach().requires_grad_()


# %%
# The three flows start from the same points.

rng = np.random.default_rng(0)
start = torch.tensor(0.25 * rng.normal(size=(N, 2)) + [0.5, 1.4])
target = moons(N, rng)
figure, axes = plt.subplots(3, len(STEPS), figsize=(12, 6.4), squeeze=False, layout="constrained")
for row, (name, loss) in zip(axes, LOSSES.items(), strict=True):
    for ax, step, (x, value) in zip(row, STEPS, flow(loss, start, target), strict=True):
        ax.scatter(*target.numpy().T, s=3, color="0.75", linewidths=0)
        ax.scatter(*x.T, s=4, color="#1f5fa8", linewidths=0)
        ax.set(xticks=[], yticks=[], xlim=(-1.4, 2.4), ylim=(-0.9, 2.3), aspect="equal")
        ax.set_title(f"step {step}: {value:.3g}", fontsize=9)
    row[0].set_ylabel(name, fontsize=9)
plt.show()
