"""Pictures as arrays: any depth, grey or colour, with or without opacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._types import Array, Index, Matrix, Vector
from ..errors import InvalidProblem

#: Pixels converted to floats at once: a picture is never held in floats as a whole.
CHUNK = 1 << 18

_DEPTHS = {"uint8": 255.0, "uint16": 65535.0}


@dataclass(frozen=True)
class Pixels:
    """An (n, channels) view of a picture: one or three channels of colour, then opacity."""

    table: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, image: object, name: str) -> Pixels:
        """Check a picture given as an array, or say what is wrong with it."""
        try:
            array = np.asarray(image)
        except ValueError:  # ragged
            array = np.asarray(None)
        channels = array.shape[2] if array.ndim == 3 else 1
        if array.ndim not in (2, 3) or not 1 <= channels <= 4 or array.size == 0:
            raise InvalidProblem(
                f"{name} has shape {array.shape}; a picture is (height, width) or (height, width, "
                "channels) with 1 to 4 channels."
            )
        if np.ma.is_masked(image):
            raise InvalidProblem(
                f"{name} has masked pixels; every pixel must be a number (fill them)."
            )
        if array.dtype.name not in _DEPTHS and array.dtype.kind != "f":
            raise InvalidProblem(
                f"{name} has values of type {array.dtype}; a picture holds uint8, uint16, or "
                "floats in [0, 1] (convert it)."
            )
        if array.dtype.kind == "f" and not (array.min() >= 0 and array.max() <= 1):
            raise InvalidProblem(
                f"{name} holds NaN or values outside [0, 1]; pictures of floats live in [0, 1] "
                "(divide by the largest value)."
            )
        return cls(array.reshape(-1, channels), array.shape)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def is_grey(self) -> bool:
        """Tell whether there is one channel of colour."""
        return bool(self.table.shape[1] < 3)

    @property
    def has_alpha(self) -> bool:
        """Tell whether the last channel is opacity."""
        return bool(self.table.shape[1] % 2 == 0)

    def chunks(self) -> Iterator[tuple[slice, Matrix, Vector | None]]:
        """Yield where, colours (k, 3) as float32 in [0, 1], and opacity or None."""
        for start in range(0, len(self), CHUNK):
            where = slice(start, min(start + CHUNK, len(self)))
            yield where, *self.take(where)

    def take(self, where: slice | Index) -> tuple[Matrix, Vector | None]:
        """Return colours and opacity of some pixels."""
        part = self.table[where].astype(np.float32)
        part /= np.float32(_DEPTHS.get(self.table.dtype.name, 1.0))
        colors = np.ascontiguousarray(
            np.repeat(part[:, :1], 3, axis=1) if self.is_grey else part[:, :3]
        )
        return colors, part[:, -1] if self.has_alpha else None  # type: ignore[return-value]

    def blank(self, is_grey: bool) -> Pixels:
        """Return a picture of the same size, depth and opacity, to be filled with colours."""
        channels = (1 if is_grey else 3) + self.has_alpha
        table = np.empty((len(self), channels), self.table.dtype)
        if self.has_alpha:
            table[:, -1] = self.table[:, -1]
        has_axis = len(self.shape) == 3 or channels > 1
        return Pixels(table, (*self.shape[:2], channels) if has_axis else self.shape)

    def put(self, where: slice, colors: Matrix) -> None:
        """Write colours in [0, 1], rounded to the picture's depth."""
        depth = _DEPTHS.get(self.table.dtype.name)
        values = colors.mean(axis=1, keepdims=True) if self.is_grey else colors
        values = np.clip(values, 0, 1)
        if depth is not None:
            values = np.rint(values * np.float32(depth))
        self.table[where, : values.shape[1]] = values

    @property
    def image(self) -> Array:
        """The picture as an array."""
        return self.table.reshape(self.shape)
