"""Ways to spoil a saved file: bytes, fields, headers."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from epsilot.engine import storage

from .problems import Rng

#: What a field of a header may be replaced by.
WRONG = (
    None, True, -1, 0, 10**30, -(10**30), 1.5, float("nan"), float("inf"), -float("inf"), "", "x",
    [], [1], {}, {"x": 1},
)  # fmt: skip
DTYPES = ("float32", "float16", "int64", "int8", "complex128", "bool", "U4", "longdouble")
BOMB = 1 << 28  # bytes that a few kilobytes unpack to

Fields = dict[str, Any]


def spoil(rng: Rng, path: Path) -> str:
    """Spoil a file in one way, and say which.

    A digest would refuse nearly all of it, so most files are signed anew: what they hold must be
    looked at too.
    """
    way = str(rng.choice(list(WAYS)))
    what = WAYS[way](rng, path)
    if way in FORGEABLE and rng.random() < 0.7:
        forge(path)
        way += ", signed anew"
    return f"{way}: {what}"


def forge(path: Path) -> None:
    """Give a changed file the digest of what it now holds."""
    fields = read(path)
    header = str(fields.get("header", ""))
    rest = {name: x for name, x in fields.items() if name not in ("header", "digest")}
    fields["digest"] = np.array(storage._digest(header, rest))
    write(path, fields)


# -- bytes -------------------------------------------------------------------------------------


def flip(rng: Rng, path: Path) -> str:
    """Change a few bytes."""
    data = bytearray(path.read_bytes())
    places = rng.integers(len(data), size=int(rng.integers(1, 4)))
    for place in places:
        data[place] ^= int(rng.integers(1, 256))
    path.write_bytes(data)
    return f"at {places.tolist()}"


def cut(rng: Rng, path: Path) -> str:
    """Keep only the first bytes."""
    data = path.read_bytes()
    kept = int(rng.integers(len(data)))
    path.write_bytes(data[:kept])
    return f"{kept} of {len(data)} bytes"


def prolong(rng: Rng, path: Path) -> str:
    """Append bytes."""
    junk = rng.bytes(int(rng.integers(1, 1000)))
    path.write_bytes(path.read_bytes() + junk)
    return f"{len(junk)} bytes"


def replace_all(rng: Rng, path: Path) -> str:
    """Write something else altogether."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(5))
    contents = (b"PK\x03\x04", b"{}", buffer.getvalue(), bytes(1000), "η".encode() * 50)
    path.write_bytes(contents[rng.integers(len(contents))])
    return "other content"


# -- fields ------------------------------------------------------------------------------------


def read(path: Path) -> Fields:
    """Return all fields of an archive."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write(path: Path, fields: Fields) -> None:
    """Write an archive."""
    with path.open("wb") as file:
        np.savez(file, **fields)


def some_field(rng: Rng, fields: Fields) -> str:
    """Draw an array's name."""
    return str(rng.choice([name for name in fields if name not in ("header", "digest")]))


def drop(rng: Rng, path: Path) -> str:
    """Leave a field out."""
    fields = read(path)
    name = str(rng.choice(list(fields)))
    del fields[name]
    write(path, fields)
    return name


def reshape(rng: Rng, path: Path) -> str:
    """Shorten, lengthen or bend an array."""
    fields = read(path)
    name = some_field(rng, fields)
    x = fields[name]
    shapes: dict[str, Callable[[], Any]] = {
        "empty": lambda: x.ravel()[:0],
        "shorter": lambda: x.ravel()[: max(x.size - 1, 0)],
        "half": lambda: x[: len(x) // 2] if x.ndim else x,
        "longer": lambda: np.concatenate([x.ravel(), x.ravel()]),
        "column": lambda: x.reshape(-1, 1),
        "row": lambda: x.reshape(1, -1),
        "scalar": lambda: x.ravel()[0] if x.size else np.float64(0),
        "transposed": lambda: x.T.copy(),
    }
    how = str(rng.choice(list(shapes)))
    fields[name] = shapes[how]()
    write(path, fields)
    return f"{name} {how}"


def retype(rng: Rng, path: Path) -> str:
    """Change the type of an array."""
    fields = read(path)
    name, dtype = some_field(rng, fields), str(rng.choice(DTYPES))
    with np.errstate(all="ignore"):
        fields[name] = fields[name].astype(dtype)
    write(path, fields)
    return f"{name} to {dtype}"


def overwrite(rng: Rng, path: Path) -> str:
    """Fill an array, or one entry of it, with a number."""
    fields = read(path)
    name = some_field(rng, fields)
    number = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 1e-310, 1.0, 1e9])
    x = fields[name].copy()
    with np.errstate(all="ignore"):
        if x.ndim and x.size and rng.random() < 0.5:
            x.flat[rng.integers(x.size)] = np.asarray(number).astype(x.dtype)
        else:
            x = np.full_like(x, np.asarray(number).astype(x.dtype))
    fields[name] = x
    write(path, fields)
    return f"{name} with {number}"


def exchange(rng: Rng, path: Path) -> str:
    """Exchange two arrays."""
    fields = read(path)
    one, two = some_field(rng, fields), some_field(rng, fields)
    fields[one], fields[two] = fields[two], fields[one]
    write(path, fields)
    return f"{one} and {two}"


def bomb(rng: Rng, path: Path) -> str:
    """Let an array unpack to far more than it should, or claim to."""
    fields = read(path)
    name = some_field(rng, fields)
    count = 10**13 if rng.random() < 0.7 else BOMB // 8
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    del fields[name]
    write(path, fields)
    chunk = bytes(1 << 20)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        file.write(head.getvalue())
        for _ in range(BOMB // len(chunk) if count == BOMB // 8 else 1):
            file.write(chunk)
    return f"{name} of {8 * count} bytes"


# -- headers -----------------------------------------------------------------------------------


def edit(rng: Rng, path: Path) -> str:
    """Remove or replace one field of the header."""
    fields = read(path)
    header = json.loads(str(fields["header"]))
    key = str(rng.choice(list(header)))
    if rng.random() < 0.2:
        del header[key]
        how = "removed"
    else:
        header[key] = WRONG[rng.integers(len(WRONG))]
        how = repr(header[key])
    fields["header"] = np.array(json.dumps(header))
    write(path, fields)
    return f"{key} {how}"


def improve(rng: Rng, path: Path) -> str:
    """Claim better bounds than were proved."""
    fields = read(path)
    header = json.loads(str(fields["header"]))
    names = [k for k in ("upper", "lower", "value", "lower_bound", "value_linear") if k in header]
    for name in names:
        header[name] = 0.0
    fields["header"] = np.array(json.dumps(header))
    write(path, fields)
    return f"{' and '.join(names)} 0"


def header_type(rng: Rng, path: Path) -> str:
    """Make the header something other than a JSON object."""
    fields = read(path)
    texts: tuple[Any, ...] = ("", "[]", "null", "{", "1", '{"format": 1}', np.arange(3), 7.5)
    which = int(rng.integers(len(texts)))
    fields["header"] = np.array(texts[which])
    write(path, fields)
    return repr(texts[which])


WAYS: dict[str, Callable[[Rng, Path], str]] = {
    "bytes flipped": flip,
    "cut": cut,
    "prolonged": prolong,
    "replaced": replace_all,
    "field dropped": drop,
    "field reshaped": reshape,
    "field retyped": retype,
    "field overwritten": overwrite,
    "fields exchanged": exchange,
    "unpacks to more": bomb,
    "header edited": edit,
    "bounds improved": improve,
    "header of another type": header_type,
}
FORGEABLE = [name for name in WAYS if name.startswith(("field", "header", "bounds"))]
