"""The errors of files on disk, one class per situation.

::

    StorageError                     file, offset, advice
    ├── CorruptFileError             a durable file does not hold what it must; never read as empty
    │   ├── CorruptLogError          a segment is damaged below its torn tail
    │   ├── CorruptSnapshotError     a *.checkpoint file is damaged or incomplete
    │   └── PropertiesFormatError    text that java.util.Properties could not load either
    ├── UnknownVersionError          a file of a format version this release does not know
    ├── DiskError                    the operating system refused; `errno` says why
    │   ├── DiskFullError            no space left on the device, or the quota is used up
    │   └── TooManyOpenFilesError    no descriptor is left; the disk is sound
    ├── PoisonedError                used after a failed write or fsync: open it again
    ├── DirectoryLockedError         another process or node owns the directory
    ├── MissingSnapshotError         a snapshot that must be there is not
    ├── InvalidSnapshotIdError       an end offset and epoch that the log never had
    ├── InvalidAppendError           a batch that does not continue the log; nothing was written
    ├── InvalidTruncationError       a truncation below what the log still holds
    ├── CleaningAbortedError         the cleaning of a log was to end early; its files are sound
    ├── OffsetOutOfRangeError        a read below the start or above the end of the log
    └── MetaPropertiesError          meta.properties files that contradict each other or the config

Each error has its file, the byte position in it if that is known, and advice for the operator.
`str()` returns all of it on one line.
"""

from pathlib import Path
from typing import Final, Self

_QUOTED_CHARACTERS: Final = 100


def shortened(text: str) -> str:
    """Return a text out of a file, for a message: a damaged line may be as long as the file."""
    if len(text) <= _QUOTED_CHARACTERS:
        return text
    return f"{text[:_QUOTED_CHARACTERS]}... ({len(text)} characters)"


class StorageError(Exception):
    """The base of all errors that this package raises on purpose."""

    def __init__(
        self, problem: str, *, file: Path | None = None, offset: int | None = None, advice: str = ""
    ) -> None:
        self.problem = problem
        self.file = file
        self.offset = offset
        self.advice = advice
        where = "" if file is None else f"{file}: "
        position = "" if offset is None else f" (at byte {offset})"
        ending = f". {advice}" if advice else ""
        super().__init__(f"{where}{problem}{position}{ending}")


class CorruptFileError(StorageError):
    """A durable file does not hold what its format demands."""

    def with_advice(self, advice: str) -> Self:
        """Return the same error with one more piece of advice."""
        return type(self)(
            self.problem, file=self.file, offset=self.offset, advice=f"{self.advice}. {advice}"
        )


class CorruptLogError(CorruptFileError):
    """A log segment is damaged at a place that may hold acknowledged records."""


class CorruptSnapshotError(CorruptFileError):
    """A snapshot is damaged, incomplete, or not a snapshot."""


class PropertiesFormatError(CorruptFileError):
    """Text is not in the format of java.util.Properties."""


class UnknownVersionError(StorageError):
    """A file has a format version that this release does not know."""


class DiskError(StorageError):
    """The operating system refused an operation; `errno` is its reason."""

    def __init__(self, problem: str, *, errno: int | None, file: Path, advice: str = "") -> None:
        super().__init__(problem, file=file, advice=advice)
        self.errno = errno


class DiskFullError(DiskError):
    """No space is left for a write."""


class TooManyOpenFilesError(DiskError):
    """The process has no descriptor left for a file; the disk is sound."""


class PoisonedError(StorageError):
    """An object was used after one of its writes failed; only opening again helps."""


class DirectoryLockedError(StorageError):
    """Another process, or another node of this process, owns the directory."""


class MissingSnapshotError(StorageError):
    """A required snapshot is missing: the log starts above zero, or a caller asked for it."""


class InvalidSnapshotIdError(StorageError):
    """An end offset and epoch that do not lie on a batch boundary of this log."""


class InvalidAppendError(StorageError):
    """A batch does not continue the log; nothing of the call was written."""


class InvalidTruncationError(StorageError):
    """A truncation would remove what must stay."""


class CleaningAbortedError(StorageError):
    """The cleaning of a log ends early, because something else is to happen to the log."""


class OffsetOutOfRangeError(StorageError):
    """A read below the log's start or above its end."""


class MetaPropertiesError(StorageError):
    """The meta.properties files of a node contradict each other or the configuration."""
