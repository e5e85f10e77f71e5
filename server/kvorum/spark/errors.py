"""Errors that are raised while metadata files are read.

SparkSliceError
├── MetadataFilesError    a path holds no usable files
└── DamagedFileError      a file is damaged, or of an unknown format
"""

from __future__ import annotations


class SparkSliceError(Exception):
    """Reading metadata files failed; the text says where and why."""


class MetadataFilesError(SparkSliceError):
    """A path without files of a metadata log, or with some of them missing."""


class DamagedFileError(SparkSliceError):
    """A file is damaged, or of a format newer than this reader."""

    def __init__(self, *, file: str, offset: int, reason: str) -> None:
        super().__init__(f"{file}: damaged at offset {offset}: {reason}")
        self.file = file
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling between processes, which keyword-only arguments would prevent."""
        return _damaged_file_error, (self.file, self.offset, self.reason)


def _damaged_file_error(file: str, offset: int, reason: str) -> DamagedFileError:
    return DamagedFileError(file=file, offset=offset, reason=reason)
