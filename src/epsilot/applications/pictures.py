"""Read and write picture files, with their depth, opacity and colour profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .._types import Array
from ..display.charts import rgb_png
from ..errors import InvalidProblem, MissingExtra
from ..files import StrPath, check_writable, opened_image, write_atomically
from ..wording import named

if TYPE_CHECKING:
    from PIL.Image import Image

#: File types without opacity and with 8 bits per channel only.
_PLAIN = (".jpg", ".jpeg", ".bmp")
#: Options of pillow that keep the quality of a picture, by file type.
_QUALITY = {".jpg": {"quality": 95, "subsampling": 0}, ".jpeg": {"quality": 95, "subsampling": 0}}


def pillow(module: str) -> ModuleType:
    """Import a module of pillow, or name the extra that installs it."""
    try:
        return import_module(f"PIL.{module}")
    except ImportError as error:
        raise MissingExtra("a picture in a file", "pillow", "plot") from error


@dataclass(frozen=True)
class ProfiledImage:
    """An array of uint8 or uint16, and its colour profile."""

    array: Array
    profile: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def size_text(self) -> str:
        """Width, height, channels and depth as text."""
        height, width = self.array.shape[:2]
        channels = self.array.shape[2] if self.array.ndim == 3 else 1
        kind = {1: "grey", 2: "grey with alpha", 3: "RGB", 4: "RGBA"}[channels]
        return f"{width} × {height}, {kind}, {8 * self.array.itemsize}-bit"


def read_picture(path: StrPath) -> ProfiledImage:
    """Read a picture of any mode, rotated as its EXIF data say.

    Grey of 8 and 16 bits and RGB are kept, each with or without opacity. Palettes and other colour
    spaces become RGB. Of an animation the first frame is read. Pillow reduces RGB of 16 bits per
    channel to 8.
    """
    ImageOps = pillow("ImageOps")
    with opened_image(path) as file:
        profile = {k: v for k, v in file.info.items() if k == "icc_profile" and v}
        array = _array(ImageOps.exif_transpose(file))
    return ProfiledImage(array, profile)


def check_picture_path(path: StrPath, picture: ProfiledImage, is_grey: bool) -> None:
    """Raise before the solve if a picture cannot be written to the path without loss."""
    Image = pillow("Image")
    check_writable(path)
    suffix = Path(path).suffix.lower()
    if Image.registered_extensions().get(suffix) not in Image.SAVE:
        raise InvalidProblem(
            f"{named(path)} has the file type {suffix[:9] or '(none)'}, which cannot be written; "
            "choose .png, .jpg or .tif."
        )
    has_alpha = picture.array.ndim == 3 and picture.array.shape[2] % 2 == 0
    is_deep = picture.array.dtype == np.uint16
    if suffix in _PLAIN and (has_alpha or is_deep):
        lost = "transparency" if has_alpha else "16 bits per channel"
        raise InvalidProblem(
            f"{named(path)} cannot hold the source's {lost}; write a .png instead (or convert the "
            "source)."
        )
    if is_deep and not is_grey and suffix != ".png":
        raise InvalidProblem(
            f"{named(path)} cannot hold 16 bits per colour channel; write a .png instead."
        )


def write_picture(path: StrPath, picture: ProfiledImage) -> None:
    """Write a picture atomically, in the file type of its name."""
    Image = pillow("Image")
    suffix = Path(path).suffix.lower()
    if picture.array.dtype == np.uint16 and picture.array.ndim == 3:
        content = _deep_png(picture.array)
        write_atomically(path, lambda file: file.write(content))
        return
    kind = Image.registered_extensions()[suffix]
    image = Image.fromarray(picture.array)
    options = {**_QUALITY.get(suffix, {}), **picture.profile}
    write_atomically(path, lambda file: image.save(file, format=kind, **options))


def _deep_png(array: Array) -> bytes:
    """Return 16-bit RGB as a PNG file, which pillow cannot write."""
    height, width, _ = array.shape
    rows = array.astype(">u2").view(np.uint8).reshape(height, -1)
    filtered = np.full(
        (height, 1 + rows.shape[1]), 2, dtype=np.uint8
    )  # filter 2: difference from the row above
    filtered[:, 1:] = rows
    filtered[1:, 1:] -= rows[:-1]
    return rgb_png(filtered, width, depth=16, level=6)


def _array(image: Image) -> Array:
    """Return an open picture as an array of uint8 or uint16."""
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    if image.mode.startswith("I;16"):
        return np.asarray(image, dtype=np.uint16)
    if image.mode in ("I", "F"):
        deep = np.asarray(image)
        if not (deep.min() >= 0 and deep.max() <= 65535):
            raise ValueError("its values are not between 0 and 65535")
        return np.asarray(np.rint(deep), dtype=np.uint16)
    if image.mode in ("1", "L", "LA"):
        return np.asarray(image.convert("LA" if has_alpha else "L"))
    return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
