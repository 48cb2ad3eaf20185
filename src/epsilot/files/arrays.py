"""Read arrays and images from files, after checking their sizes and types."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from .. import memory
from .._types import Array, Index, Matrix, Vector
from ..errors import InvalidProblem, MissingExtra
from ..wording import first_line, named, shorter, shown
from .paths import StrPath, check_unpacked, existing

if TYPE_CHECKING:
    from PIL.Image import Image


_NPY_MAGIC = b"\x93NUMPY"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_DAMAGE = (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, NotImplementedError)


def archive_names(path: StrPath) -> list[str]:
    """Return the names of the arrays in a ``.npz`` file."""
    with _opened(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_archive(
    path: StrPath, names: Iterable[str] | None = None, limit: int | None = None
) -> dict[str, Array]:
    """Read arrays from an untrusted ``.npz`` file.

    Before anything is unpacked, every array must be as large as its header says, contain no Python
    objects, and fit in memory with the others.

    Parameters
    ----------
    path
        The archive.
    names
        Arrays to read; all by default.
    limit
        Bytes that they may take together; the memory that is available by default.

    Raises
    ------
    InvalidProblem
        When the file is missing, damaged, too large, or its sizes contradict each other.
    """
    with _opened(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if len(members) != len(archive.namelist()):
            raise _damaged(named(path), "two arrays have the same name")
        wanted = list(members) if names is None else list(names)
        for name in wanted:
            if name not in members:
                raise _damaged(named(path), f"the array {shown(name)} is missing")
        total = sum(_checked_member(archive, path, members[name]) for name in wanted)
        if limit is not None and total > limit:
            raise InvalidProblem(
                f"{named(path)} unpacks to {memory.size_text(total)}; at most "
                f"{memory.size_text(limit)} are expected here (is it the right file?)"
            )
        check_unpacked(path, total)
        return {name: _read_member(archive, path, members[name]) for name in wanted}


def read_npy(path: Path) -> Array:
    """Read the array of a ``.npy`` file."""
    with path.open("rb") as file:
        if file.read(len(_NPY_MAGIC)) != _NPY_MAGIC:
            raise InvalidProblem(
                f"{named(path)} is not in NumPy's format; a .npy file is required "
                "(save it with numpy.save, or give text the ending .csv)"
            )
        file.seek(0)
        n_bytes = _promised(file, named(path))
        if n_bytes > path.stat().st_size - file.tell():
            raise _damaged(named(path), "its header promises more than the file holds")
        memory.ask(n_bytes, named(path), "use a smaller file")
        file.seek(0)
        return _array(file, named(path))


@contextmanager
def _opened(path: StrPath) -> Iterator[zipfile.ZipFile]:
    path = existing(path)
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGE:
        raise InvalidProblem(
            f"{named(path)} is not a NumPy archive; a .npz file is required (save it with "
            "numpy.savez)"
        ) from None
    with archive:
        yield archive


def _checked_member(archive: zipfile.ZipFile, path: StrPath, member: str) -> int:
    """Return the bytes of an array, after comparing its header with the archive."""
    name, size = (
        f"{named(path)}:{named(member.removesuffix('.npy'))}",
        archive.getinfo(member).file_size,
    )
    try:
        file = archive.open(member)
    except (*_DAMAGE, RuntimeError) as error:  # RuntimeError: it is encrypted
        raise _damaged(name, first_line(error)) from error
    with file:
        n_bytes = _promised(file, name)
        if file.tell() + n_bytes != size:
            raise _damaged(
                name, f"it unpacks to {size:,} bytes and its header promises {n_bytes:,} of numbers"
            )
    return n_bytes


def _promised(file: IO[bytes], name: str) -> int:
    """Read a header, and return the bytes of numbers that should follow."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format is unknown")
        shape, _, dtype = _HEADERS[version](file)
    except _DAMAGE as error:
        if "magic string" in str(error):
            raise InvalidProblem(
                f"{name} is not in NumPy's format; an array is required "
                "(save the archive with numpy.savez)"
            ) from error
        raise _damaged(name, first_line(error)) from error
    if dtype.hasobject:
        raise InvalidProblem(
            f"{name} holds Python objects; an array of numbers is required "
            "(convert it with array.astype(float) before saving)"
        )
    if any(length < 0 for length in shape):
        raise _damaged(name, f"its shape is {shape}")
    return math.prod(shape) * dtype.itemsize


def _read_member(archive: zipfile.ZipFile, path: StrPath, member: str) -> Array:
    with archive.open(member) as file:
        return _array(file, f"{named(path)}:{named(member.removesuffix('.npy'))}")


def _array(file: IO[bytes], name: str) -> Array:
    try:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(name, first_line(error)) from error
    return array


def _damaged(name: str, reason: str) -> InvalidProblem:
    return InvalidProblem(
        f"{name} is damaged ({reason}); a complete array is required (save it again)"
    )


TEXT_SUFFIXES = (".csv", ".txt")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif")
SUFFIXES = (".npy", ".npz", *TEXT_SUFFIXES, *IMAGE_SUFFIXES)

#: Largest number of array names that a message lists, and of characters per name.
NAMES_SHOWN, NAME_SHOWN = 5, 20
#: Bytes of memory that reading takes: per byte of a text file, and per pixel of an image.
BYTES_OF_TEXT, BYTES_OF_PIXEL = 10, 100
#: Bytes at the beginning of a file that are searched for NUL, which no text contains.
PROBED_BYTES = 1 << 16

_LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601


def read_array(path: StrPath, key: str | None = None) -> Array:
    """Read the numbers of a file.

    Parameters
    ----------
    path
        A ``.npy``, ``.npz``, ``.csv``, ``.txt`` or image file. Text files are separated by
        commas, semicolons or white space, may start with a line of column names, and always
        give a two-dimensional array; images give their mass, see `read_image`.
    key
        Name of the array inside a ``.npz`` archive; needed when it holds several.

    Returns
    -------
    array
        Integers and floats keep their type.

    Raises
    ------
    InvalidProblem
        When the file is missing, empty, damaged, of another type or not numeric.
    """
    path = existing(path)
    suffix = path.suffix.lower()
    if key is not None and suffix != ".npz":
        raise InvalidProblem(
            f"{named(path)} was given the array name {shown(key)}, but only .npz archives hold "
            "named arrays (leave the name out)"
        )
    if suffix == ".npy":
        array = read_npy(path)
    elif suffix == ".npz":
        array = _read_npz(path, key)
    elif suffix in TEXT_SUFFIXES:
        array = _read_text(path)
    elif suffix in IMAGE_SUFFIXES:
        array = read_image(path)
    else:
        raise InvalidProblem(
            f"{named(path)} has the file type {suffix[:9] or '(none)'}; required is one of "
            f"{', '.join(SUFFIXES)} (save the array with numpy.save)"
        )
    return _numeric(array, path)


def read_image(path: StrPath) -> Matrix:
    """Read the mass of an image: luminance times opacity, each between 0 and 1.

    Parameters
    ----------
    path
        An image of any mode pillow reads: black and white, grey of 8, 16 or 32 bits, colour,
        palette, with or without transparency. Of an animation the first frame is taken.

    Returns
    -------
    mass
        (height, width) nonnegative array, not normalised.
    """
    path = existing(path)
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise InvalidProblem(
            f"{named(path)} has the file type {path.suffix[:9] or '(none)'}; an image is required, "
            f"one of {', '.join(IMAGE_SUFFIXES)} (convert it, or pass numbers as a cost or points)"
        )
    with opened_image(path) as image:
        mass = _mass_of_image(image)
    if not np.isfinite(mass).all() or mass.min() < 0:
        raise InvalidProblem(
            f"{named(path)} holds negative or non-finite pixels; masses must be nonnegative and "
            "finite (shift or clean the image)"
        )
    return mass


@contextmanager
def opened_image(path: StrPath) -> Iterator[Image]:
    """Open an image whose pixels fit in memory; pillow reads them inside the block."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra(f"reading the image {named(path)}", "pillow", "plot") from error
    try:
        with warnings.catch_warnings():  # the next lines check the size themselves
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(existing(path))
        with image:
            pixels = image.width * image.height
            check_unpacked(path, 8 * pixels)
            memory.ask(BYTES_OF_PIXEL * pixels, f"reading {named(path)}", "use a smaller image")
            yield image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(
            f"{named(path)} cannot be read as an image ({first_line(error)}); a complete image "
            "file is required (open and save it again in an image editor)"
        ) from error


def _read_npz(path: Path, key: str | None) -> Array:
    """Read one array of an archive."""
    names = archive_names(path)
    listed = _listed(names)
    if key is None and len(names) != 1:
        raise InvalidProblem(
            f"{named(path)} holds {len(names)} arrays ({listed}); one must be chosen "
            f"(name it, as in {named(path.name)}:{_listed(names[:1]) if names else 'name'})"
        )
    if key is not None and key not in names:
        raise InvalidProblem(
            f"{named(path)} holds no array {shown(key)}; one of its arrays is required (it has: "
            f"{listed})"
        )
    name = names[0] if key is None else key
    return read_archive(path, [name])[name]


def _listed(names: Sequence[str]) -> str:
    """Join the first names of arrays for a message."""
    first = [shorter(name, NAME_SHOWN) for name in names[:NAMES_SHOWN]]
    return ", ".join([*first, *(["..."] if len(names) > NAMES_SHOWN else [])]) or "nothing"


def _numeric(array: Array, path: Path) -> Array:
    """Return a nonempty array of real numbers in the machine's byte order."""
    if array.dtype.kind not in "biuf":
        raise InvalidProblem(
            f"{named(path)} holds values of type {array.dtype}; real numbers are required "
            "(convert it with array.astype(float) before saving)"
        )
    if array.size == 0:
        raise InvalidProblem(
            f"{named(path)} holds an array of shape {array.shape} without any number; at least one "
            "is required (check what was saved)"
        )
    if array.dtype.kind == "b":
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _read_text(path: Path) -> Array:
    """Read a table of numbers separated by commas, semicolons or white space."""
    memory.ask(BYTES_OF_TEXT * path.stat().st_size, f"reading {named(path)}", "save it as .npy")
    try:
        with path.open("rb") as file:
            if b"\0" in file.read(PROBED_BYTES):
                raise ValueError
        text = path.read_text(encoding="utf-8-sig")
    except ValueError:  # also of characters that are not UTF-8
        raise InvalidProblem(
            f"{named(path)} is not a text file in UTF-8; a table of numbers is required "
            "(save it as CSV in UTF-8)"
        ) from None
    rows = _contents(text)
    delimiter = _delimiter(rows)
    rows = rows[_names_columns(rows, delimiter) :]
    if not rows:
        raise InvalidProblem(
            f"{named(path)} holds no numbers; a table of numbers is required (check what was saved)"
        )
    try:
        return np.loadtxt(
            [content for _, content in rows], delimiter=delimiter, quotechar='"', ndmin=2
        )
    except ValueError as error:
        raise _bad_cell(path, rows, delimiter, error) from error


def column_names(path: StrPath) -> list[str] | None:
    """Return the names in the first line of a table, or None if the file has no such line."""
    path = Path(path)
    if path.suffix.lower() not in TEXT_SUFFIXES:
        return None
    with path.open(encoding="utf-8-sig") as file:
        rows: list[tuple[int, str]] = []
        while len(rows) < 2 and (line := file.readline()):
            rows += _contents(line)
    delimiter = _delimiter(rows)
    return _cells(rows[0][1], delimiter) if _names_columns(rows, delimiter) else None


def _contents(text: str) -> list[tuple[int, str]]:
    """Return the lines of a text that are not empty, without comments, and their numbers."""
    return [
        (number, content)
        for number, line in enumerate(text.splitlines(), start=1)
        if (content := line.partition("#")[0].strip())
    ]


def _names_columns(rows: Sequence[tuple[int, str]], delimiter: str | None) -> bool:
    """Tell whether the first line of a table names its columns."""
    return len(rows) > 1 and not any(map(_is_number, _cells(rows[0][1], delimiter)))


def _bad_cell(
    path: Path, rows: Sequence[tuple[int, str]], delimiter: str | None, error: ValueError
) -> InvalidProblem:
    """Return the error for the first line that is not numeric or differs in length."""
    first, width = rows[0][0], len(_cells(rows[0][1], delimiter))
    for number, content in rows:
        cells = _cells(content, delimiter)
        for column, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return InvalidProblem(
                    f"{named(path)}, line {number}, column {column} holds {shown(cell)}; a number "
                    "with a decimal point is required (correct or remove the cell)"
                )
        if len(cells) != width:
            plural = "" if len(cells) == 1 else "s"
            return InvalidProblem(
                f"{named(path)}, line {number} holds {len(cells)} value{plural} and line {first} "
                f"holds {width}; all lines must have as many (fill or remove the line)"
            )
    return InvalidProblem(
        f"{named(path)} is not a table of numbers ({first_line(error)}); plain decimal numbers are "
        "required (save it as CSV)"
    )


def _delimiter(rows: Sequence[tuple[int, str]]) -> str | None:
    """Return the separator of a table; None stands for white space."""
    return next((mark for mark in ";," if any(mark in content for _, content in rows)), None)


def _cells(line: str, delimiter: str | None) -> list[str]:
    """Split a line of text into its cells."""
    return [cell.strip().strip('"') for cell in line.split(delimiter)]


def _is_number(cell: str) -> bool:
    """Tell whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _mass_of_image(image: Image) -> Matrix:
    """Return luminance times opacity of an open picture."""
    if image.mode == "1":
        image = image.convert("L")
    if image.mode == "F":
        return np.asarray(image, dtype=np.float64)
    if image.mode.startswith("I"):
        deep = np.asarray(image).astype(np.float64)
        return deep / (65535.0 if deep.max() <= 65535 else 2.0**31 - 1)
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    if image.mode == "L" and not has_alpha:
        return np.asarray(image, dtype=np.float64) / 255.0
    pixels = np.asarray(image.convert("RGBA" if has_alpha else "RGB"), dtype=np.float64) / 255.0
    red, green, blue = (share * pixels[..., k] for k, share in enumerate(_LUMINANCE))
    mass: Matrix = red + green + blue
    return mass * pixels[..., 3] if has_alpha else mass


Arrays = dict[str, Array]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class SavedArrays:
    """The arrays of an untrusted file under a prefix, each checked on access."""

    arrays: Mapping[str, Array]
    prefix: str = ""

    def under(self, name: str) -> SavedArrays:
        """Return the arrays whose names begin with ``name.`` after this prefix."""
        return SavedArrays(self.arrays, f"{self.prefix}{name}.")

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.arrays

    def size(self, name: str) -> int:
        """Return the number of entries of an array, 0 if there is none."""
        return int(np.size(self.arrays[self.prefix + name])) if name in self else 0

    def array(self, name: str, shape: Shape, dtype: DTypeLike) -> Array:
        """Return an array, or raise if its shape or type is another."""
        full, dtype = self.prefix + name, np.dtype(dtype)
        if name not in self:
            raise InvalidProblem(f"the file has no array {full}; write it again.")
        x = self.arrays[full]
        if x.shape != shape or x.dtype != dtype:
            raise InvalidProblem(
                f"the saved array {full} is {x.dtype} of shape {x.shape}; it must be {dtype} of "
                f"shape {shape} (was the file changed?)."
            )
        return x

    def vector(self, name: str, shape: Shape) -> Vector:
        """Return a float64 array of a shape, without NaN."""
        x = self.array(name, shape, np.float64)
        if np.isnan(x).any():
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} holds NaN; write the file again."
            )
        return np.asarray(x)

    def masses(self, name: str, shape: Shape) -> Vector:
        """Return a float64 array of finite, nonnegative numbers."""
        x = self.vector(name, shape)
        if x.size and not (x.min() >= 0 and x.max() < math.inf):
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} holds negative or infinite numbers."
            )
        return x

    def indices(self, name: str, shape: Shape, end: int) -> Index:
        """Return int64 indices below ``end``."""
        x = self.array(name, shape, np.int64)
        if x.size and not (x.min() >= 0 and x.max() < end):
            raise InvalidProblem(
                f"the saved array {self.prefix}{name} points beyond its {end} places."
            )
        return x
