"""Pairs of handwritten digits at any size, as in the paper's experiments."""

from __future__ import annotations

import numpy as np

from epsilot._types import Matrix
from epsilot.arguments import numeric
from epsilot.errors import InvalidProblem
from epsilot.files.images import check_image
from epsilot.files.mnist import embedded_digits

#: Intensity added to every pixel of a digit whose brightest pixel is 1.
BACKGROUND = 0.01


def mnist_pair(side: int, seed: int, digits: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """Pick two handwritten digits and scale them to a size.

    Pixels are averaged by area, a small background is added so that no mass is zero, and each
    image is scaled to total mass 1.

    Parameters
    ----------
    side
        Pixels along each side; the originals have 28.
    seed
        Seed of the generator that picks two different digits.
    digits
        Square images to pick from, brightest pixel 1 (see :func:`epsilot.files.mnist.read_digits`);
        400 of MNIST's test set, which come with the package, by default.

    Returns
    -------
    A, B
        Two (side, side) images.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998).

    Examples
    --------
    >>> A, B = mnist_pair(14, seed=0)
    >>> A.shape, bool(A.min() > 0), bool(abs(A.sum() - 1) < 1e-12)
    ((14, 14), True, True)
    """
    side, seed = check_image(side, seed, 1)
    digits = embedded_digits() if digits is None else _square_images(digits)
    first, second = np.random.default_rng(seed).choice(len(digits), 2, replace=False)
    return _downscaled(digits[first], side), _downscaled(digits[second], side)


def _square_images(digits: object) -> Matrix:
    images = numeric(digits, "digits")
    if images.ndim != 3 or len(images) < 2 or images.shape[1] != images.shape[2]:
        raise InvalidProblem(
            f"digits has shape {images.shape}; it must be (number, side, side), two square images "
            "at least"
        )
    return images


def _downscaled(image: Matrix, side: int) -> Matrix:
    """Average an image by area onto side × side pixels, with a background and unit mass."""
    old = image.shape[0]
    edges = np.arange(side + 1) * (old / side)
    cells = np.arange(old)
    # share of old pixel j that lies in new pixel i
    overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
    share = np.maximum(overlap, 0.0) * (side / old)
    scaled: Matrix = share @ image @ share.T + BACKGROUND
    scaled /= scaled.sum()
    return scaled
