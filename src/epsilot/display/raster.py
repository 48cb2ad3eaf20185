"""Pictures made of cells, as PNG files of our own making: nothing needs to be installed."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from .._types import Matrix

#: Colours of shares from 0 to 1, dark to light: equal steps look equal, in grey too.
_RISING = (
    (0, 24, 69),
    (33, 67, 107),
    (89, 96, 112),
    (142, 133, 120),
    (199, 174, 96),
    (255, 234, 70),
)
#: Colours of shares from -1 to 1: orange, white, blue.
_AROUND = ((179, 88, 6), (241, 163, 64), (247, 247, 247), (103, 169, 207), (5, 96, 160))


def png(cells: NDArray[np.uint8]) -> bytes:
    """Return rows of red, green and blue as a PNG file."""
    height, width, _ = cells.shape
    lines = np.concatenate((np.zeros((height, 1), np.uint8), cells.reshape(height, -1)), axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def rising(shares: Matrix) -> bytes:
    """Return a picture of numbers between 0 and 1."""
    return png(_coloured(shares, _RISING))


def around(shares: Matrix) -> bytes:
    """Return a picture of numbers between -1 and 1."""
    return png(_coloured(0.5 + 0.5 * shares, _AROUND))


def _coloured(shares: Matrix, colours: tuple[tuple[int, ...], ...]) -> NDArray[np.uint8]:
    """Return the colours of numbers between 0 and 1, those between anchors mixed."""
    anchors = np.linspace(0.0, 1.0, len(colours))
    mixed = [np.interp(shares, anchors, channel) for channel in zip(*colours, strict=True)]
    return np.stack(mixed, axis=-1).round().astype(np.uint8)
