"""Errors that are raised while metadata files are read.

SparkSliceError
├── OptionError           an option or a column that does not exist, or contradicts another one
├── QuorumError           controllers cannot be reached, or are not those of the checkpoint
└── LogFilesError         a path holds no usable files
    └── DamagedFileError  a file is damaged, or of an unknown format
"""

from __future__ import annotations


class SparkSliceError(Exception):
    """Reading files of a log failed; the text says where and why."""


class OptionError(SparkSliceError):
    """An option or a column that does not exist, or that contradicts another one."""


class QuorumError(SparkSliceError):
    """Controllers that cannot be reached, or whose log is not the one of the checkpoint."""


class LogFilesError(SparkSliceError):
    """A path without files of a log, or with some of them missing."""


class DamagedFileError(LogFilesError):
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
