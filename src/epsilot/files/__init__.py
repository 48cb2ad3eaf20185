"""Read arrays and images from untrusted files, and write files atomically."""

from .arrays import (
    IMAGE_SUFFIXES,
    SUFFIXES,
    TEXT_SUFFIXES,
    archive_names,
    column_names,
    opened_image,
    read_archive,
    read_array,
    read_image,
)
from .paths import StrPath, check_distinct, check_own, check_writable, existing
from .writing import write_atomically

__all__ = [
    "IMAGE_SUFFIXES",
    "SUFFIXES",
    "TEXT_SUFFIXES",
    "StrPath",
    "archive_names",
    "check_distinct",
    "check_own",
    "check_writable",
    "column_names",
    "existing",
    "opened_image",
    "read_archive",
    "read_array",
    "read_image",
    "write_atomically",
]
