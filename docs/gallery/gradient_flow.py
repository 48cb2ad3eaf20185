"""A cloud of 500 points flows down three transport losses, towards two moons.

python docs/gallery/gradient_flow.py [--out docs/pictures/gradient-flow.png]

Each step moves every point by its own gradient, times the number of points: down the exact cost,
the entropic cost, which shrinks the cloud, and the debiased divergence, which does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")
import numpy as np
import torch
from matplotlib import pyplot as plt

import epsilot.torch

REG = 0.2
LOSSES = {
    "exact": epsilot.torch.transport_cost,
    f"entropic, reg = {REG:g}": lambda x, y: epsilot.torch.transport_cost(x, y, reg=REG, tol=1e-5),
    f"divergence, reg = {REG:g}": lambda x, y: epsilot.torch.divergence(x, y, REG, tol=1e-5),
}


def moons(n: int, rng: np.random.Generator) -> torch.Tensor:
    """Return points of two half circles."""
    angle, is_upper = np.pi * rng.random(n), np.arange(n) % 2 == 0
    x = np.where(is_upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(is_upper, np.sin(angle), 0.5 - np.sin(angle))
    return torch.tensor(np.column_stack((x, y)) + 0.05 * rng.normal(size=(n, 2)))


def flow(loss, start: torch.Tensor, target: torch.Tensor, shown: Sequence[int]) -> list:
    """Return the cloud after each number of steps that is shown, and the loss there."""
    x, frames = start.clone().requires_grad_(), []
    for step in range(shown[-1] + 1):
        value = loss(x, target)
        if step in shown:
            frames.append((x.detach().numpy().copy(), value.item()))
        (slope,) = torch.autograd.grad(value, x)
        with torch.no_grad():
            x -= 0.15 * len(x) * slope
    return frames


def main(argv: Sequence[str] | None = None) -> dict[str, list]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="docs/pictures/gradient-flow.png")
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--steps", type=int, nargs="+", default=[0, 2, 5, 10, 20])
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    start = torch.tensor(0.25 * rng.normal(size=(options.points, 2)) + [0.5, 1.4])
    target = moons(options.points, rng)
    flows = {name: flow(loss, start, target, options.steps) for name, loss in LOSSES.items()}
    figure, axes = plt.subplots(
        len(flows), len(options.steps), figsize=(2.4 * len(options.steps), 6.4), squeeze=False
    )
    for row, (name, frames) in zip(axes, flows.items(), strict=True):
        for ax, step, (x, value) in zip(row, options.steps, frames, strict=True):
            ax.scatter(*target.numpy().T, s=3, color="0.75", linewidths=0)
            ax.scatter(*x.T, s=4, color="#1f5fa8", linewidths=0)
            ax.set(xticks=[], yticks=[], xlim=(-1.4, 2.4), ylim=(-0.9, 2.3), aspect="equal")
            ax.set_title(f"step {step}: {value:.3g}", fontsize=9)
        row[0].set_ylabel(name, fontsize=9)
    figure.tight_layout()
    figure.savefig(options.out, dpi=110)
    plt.close(figure)
    return flows


if __name__ == "__main__":
    main()
