"""Pairs of images after DOTmark, the benchmark for discrete optimal transport between pictures.

Schrieber, Schuhmacher, Gottschlich 2017, "DOTmark - A Benchmark for Discrete Optimal Transport",
define ten classes. Eight of them are drawn here at any size after their descriptions, from a seed
and as whole grey values from 0 to 255: white noise; three Gaussian fields, and the exponential and
the logistic function of others; Cauchy densities; and simple shapes. They are not the images of the
benchmark; those, and its photographs and micrographs, are read from its files. docs/bench.md says
how near their costs are to published ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.random import Generator
from scipy.special import gamma, kv

from epsilot._types import Matrix
from epsilot.errors import InvalidProblem
from epsilot.files import read_array

#: Sides of the torus on which a field is drawn, in sides of the image.
TORUS = 4
#: First image of a class among the files.
FIRST = 1001


def matern(r: Matrix, variance: float, smoothness: float, scale: float) -> Matrix:
    r"""Return Matérn's covariance at distances r.

    .. math:: \sigma^2 \frac{2^{1-\nu}}{\Gamma(\nu)} (r/\gamma)^\nu K_\nu(r/\gamma)
    """
    x = np.where(r > 0, r / scale, 1.0)
    factor = variance * 2 ** (1 - smoothness) / gamma(smoothness)
    return np.where(r > 0, factor * x**smoothness * kv(smoothness, x), variance)


def field(side: int, rng: Generator, variance: float, smoothness: float, scale: float) -> Matrix:
    """Draw a stationary Gaussian field on the unit square, by way of a torus around it."""
    size = TORUS * side
    steps = np.minimum(np.arange(size), size - np.arange(size)) / side
    covariance = matern(np.hypot.outer(steps, steps), variance, smoothness, scale)
    spectrum = np.maximum(np.fft.fft2(covariance).real, 0)
    noise = np.fft.fft2(rng.normal(size=(size, size)))
    drawn = np.fft.ifft2(np.sqrt(spectrum) * noise).real
    return np.asarray(drawn[:side, :side])


def _identity(z: Matrix) -> Matrix:
    return z


def _logistic(z: Matrix) -> Matrix:
    return np.asarray(1 / (1 + np.exp(-z)))


def random_field(
    side: int,
    rng: Generator,
    variance: float,
    smoothness: float,
    scale: float,
    link: Callable[[Matrix], Matrix] = _identity,
) -> Matrix:
    """Draw a function of a Gaussian field."""
    return link(field(side, rng, variance, smoothness, scale))


def noise(side: int, rng: Generator) -> Matrix:
    """Draw independent grey values."""
    return rng.integers(0, 256, (side, side)).astype(np.float64)


def _centres(side: int) -> tuple[Matrix, Matrix]:
    """Return both coordinates of the centres of pixels in the unit square."""
    x, y = (np.indices((side, side)) + 0.5) / side
    return x, y


def cauchy(side: int, rng: Generator) -> Matrix:
    """Draw a bivariate Cauchy density: its centre, and the axes and angle of its ellipse."""
    x, y = _centres(side)
    (a, b), (long, short), angle = rng.random(2), 0.1 + 0.7 * rng.random(2), np.pi * rng.random()
    u = np.cos(angle) * (x - a) + np.sin(angle) * (y - b)
    v = np.cos(angle) * (y - b) - np.sin(angle) * (x - a)
    return np.asarray((1 + (u / long) ** 2 + (v / short) ** 2) ** -1.5)


def shape(side: int, rng: Generator) -> Matrix:
    """Draw a disc, ring, square, frame, cross, triangle or half of it all, white on black."""
    x, y = _centres(side)
    radius = 0.3 + 0.2 * rng.random()
    x, y = (x - (radius + (1 - 2 * radius) * rng.random()) for x in (x, y))
    round_, square = np.hypot(x, y), np.maximum(abs(x), abs(y))
    kinds = (
        round_ <= radius,
        (round_ <= radius) & (round_ >= 0.6 * radius),
        square <= radius,
        (square <= radius) & (square >= 0.6 * radius),
        (square <= radius) & (np.minimum(abs(x), abs(y)) <= 0.3 * radius),
        (x <= radius) & (abs(y) <= (x + radius) / 2),
        x <= 0,
    )
    chosen = kinds[int(rng.integers(len(kinds)))]
    return np.where(chosen.any(), chosen, square <= 1 / side).astype(np.float64)


#: The random classes; fields have (variance, smoothness, scale) in sides of the image.
CLASSES: dict[str, Callable[[int, Generator], Matrix]] = {
    "WhiteNoise": noise,
    "GRFrough": partial(random_field, variance=1.0, smoothness=0.25, scale=0.05),
    "GRFmoderate": partial(random_field, variance=1.0, smoothness=1.0, scale=0.15),
    "GRFsmooth": partial(random_field, variance=1.0, smoothness=2.5, scale=0.3),
    "LogGRF": partial(random_field, variance=1.0, smoothness=0.5, scale=0.4, link=np.exp),
    "LogitGRF": partial(random_field, variance=4.0, smoothness=4.5, scale=0.1, link=_logistic),
    "CauchyDensity": cauchy,
    "Shapes": shape,
}
#: The classes of which there are files only.
PICTURES = ("ClassicImages", "MicroscopyImages")


def grey(image: Matrix) -> Matrix:
    """Return whole grey values, 0 for the darkest pixel and 255 for the brightest."""
    low, high = float(image.min()), float(image.max())
    return np.rint(255 * (image - low) / (high - low)) if high > low else np.full_like(image, 255.0)


def pair(name: str, side: int, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Draw two images of a random class."""
    rng = np.random.default_rng([seed, side, sorted(CLASSES).index(name)])
    A, B = (grey(CLASSES[name](side, rng)) for _ in range(2))
    return A, B


def read_pair(folder: Path, name: str, side: int, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Read two images of a class from the benchmark's files: the first and second, and so on."""
    inside = folder / "Data" if (folder / "Data").is_dir() else folder
    images = []
    for number in (FIRST + 2 * seed, FIRST + 2 * seed + 1):
        path = inside / name / f"data{side}_{number}.csv"
        image = read_array(path)
        if image.shape != (side, side):
            raise InvalidProblem(
                f"{path} holds an array of shape {image.shape}; an image of {side} x {side} pixels "
                "is required (use the benchmark's own files)."
            )
        images.append(image)
    return images[0], images[1]
