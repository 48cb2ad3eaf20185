"""A small network learns to turn noise into two moons, by the exact cost of minibatches.

python docs/gallery/train_network.py

Every step draws 256 points of noise and 256 of the data; the loss is the optimal transport cost
between what the network makes of the first and the second. No regularisation, no discriminator.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch
from gradient_flow import moons

import epsilot.torch


def main(argv: Sequence[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args(argv)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
        torch.nn.Linear(64, 2),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    values, began = [], time.process_time()
    for step in range(options.steps):
        noise, data = torch.randn(options.batch, 2), moons(options.batch, rng).float()
        value, info = epsilot.torch.transport_cost(network(noise), data, return_info=True)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
        if step % 50 == 0 or step == options.steps - 1:
            print(f"step {step:3d}: cost {values[-1]:.4f}, certified to {info.gap.item():.1e}")
    print(f"{time.process_time() - began:.1f} s of processor time")
    return values[0], values[-1]


if __name__ == "__main__":
    main()
