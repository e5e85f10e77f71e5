"""The error of this package."""

from __future__ import annotations

from kvorum.storage.errors import StorageError

_ADVICE = (
    "Nothing was written. Leave the directory out and recover from another one, or repair a copy "
    "of it; kvorum dump-log prints what is left"
)


class RecoveryRefusedError(Exception):
    """The quorum cannot, or need not, be recovered in this way; the text is one line."""


def refusal_of(error: StorageError, directory: object) -> RecoveryRefusedError:
    """Return the refusal of a directory that cannot be read; it names file and position.

    The advice of the error itself, to fetch the log again, is of no use without a quorum.
    """
    where = directory if error.file is None else error.file
    position = "" if error.offset is None else f" (at byte {error.offset})"
    return RecoveryRefusedError(f"{where}: {error.problem}{position}. {_ADVICE}.")
