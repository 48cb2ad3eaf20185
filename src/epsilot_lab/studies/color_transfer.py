"""Measure colour transfer: the fall of the distance, and time and memory of a large photograph.

python -m epsilot_lab color-transfer [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from epsilot import ColorTransfer
from epsilot.applications.pictures import ProfiledImage, read_picture, write_picture

from .. import measuring
from ..measuring import timed
from ..paper.color_transfer import FALL, photographs, sliced_distance


def distances(n_colors: int, methods: list[str], is_small: bool) -> bool:
    """Print what the sliced distance becomes; tell whether it falls enough everywhere."""
    first, second = photographs(is_small)
    before = sliced_distance(first, second)
    print(f"sliced Wasserstein distance of the photographs' colours: {before:.4f}")
    print(f"{'method':10} {'smoothing':>9} {'there':>8} {'back':>8} {'fall':>15} {'gap':>8}")
    is_good = True
    for method in methods:
        for smoothing in (0.0, 0.01, 0.03):
            model = ColorTransfer(n_colors, method=method, smoothing=smoothing)
            model.fit(first, second)
            there = sliced_distance(model.transform(first), second)
            back = sliced_distance(model.inverse_transform(second), first)
            falls = [1 - there / before, 1 - back / before]
            is_good &= min(falls) >= FALL
            print(
                f"{method:10} {smoothing:9g} {there:8.4f} {back:8.4f} "
                f"{falls[0]:7.1%} {falls[1]:7.1%} {model.gap_:8.2g}"
            )
    print(f"all fall by at least {FALL:.0%}: {'yes' if is_good else 'NO'}")
    return is_good


def large(megapixels: float, n_colors: int) -> None:
    """Print seconds of each part for a photograph of this size, and the peak of memory."""
    first, second = photographs()
    factor = int(np.ceil(np.sqrt(1e6 * megapixels / first[..., 0].size)))
    rng = np.random.default_rng(0)
    pictures = []
    for image in (first, second):
        grown = image.repeat(factor, axis=0).repeat(factor, axis=1)
        noise = rng.integers(-3, 4, grown.shape, dtype=np.int16)
        pictures.append(np.clip(grown + noise, 0, 255).astype(np.uint8))
    model = ColorTransfer(n_colors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.jpg"
        write_picture(path, ProfiledImage(pictures[0]))
        parts = {
            "read": lambda: read_picture(path),
            "fit": lambda: model.fit(*pictures),
            "transform": lambda: write_picture(path, ProfiledImage(model.transform(pictures[0]))),
        }
        print(f"{pictures[0][..., 0].size / 1e6:.1f} megapixels, {n_colors} colours")
        for name, part in parts.items():
            seconds, _ = timed(part)
            print(f"{name:10} {seconds.wall:6.2f} s, {seconds.processor:6.2f} s of processor")
    print(f"peak memory: {measuring.peak() / 2**20:.0f} MiB")


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--colors", type=int, default=1000)
    parser.add_argument("--methods", default="pdasmd,auto")
    parser.add_argument("--megapixels", type=float, default=12.0)
    parser.add_argument("--quick", action="store_true", help="few colours, small pictures")
    given = parser.parse_args(arguments)
    if given.quick:
        given.colors, given.megapixels = 60, 0.5
    is_good = distances(given.colors, given.methods.split(","), given.quick)
    large(given.megapixels, given.colors)
    if not is_good:
        raise SystemExit(1)
