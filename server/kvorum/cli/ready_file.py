"""The ready file of ``kvorum dev``: it is there in full while the cluster answers, else not."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kvorum.cli import UsageError

OPTION: Final = "--ready-file"
ADVICE: Final = "name a file in a directory that is there and that this user may write to"


class ReadyFileError(Exception):
    """The file cannot be written or removed any more; the text is one line with the reason."""


def prepare_ready_file(file: Path) -> None:
    """Remove the file of an earlier run that was killed: it would be believed.

    Raises UsageError, and leaves such a file alone, where no file can be written under this name.
    """
    with _naming(file, "be written", UsageError, advice=f": {ADVICE}"):
        if file.exists() and not file.is_file():
            kind = "is a directory" if file.is_dir() else "is no regular file"
            raise UsageError(f"{OPTION} {file} {kind}: {ADVICE}")
        _write_whole(file, "")
        file.unlink()


def write_ready_file(file: Path, text: str) -> None:
    """Write the file, which is never there in part. Raises ReadyFileError."""
    with _naming(file, "be written", ReadyFileError):
        _write_whole(file, text)


def remove_ready_file(file: Path) -> None:
    """Remove the file if it is there. Raises ReadyFileError."""
    with _naming(file, "be removed", ReadyFileError):
        file.unlink(missing_ok=True)


@contextmanager
def _naming(
    file: Path, what_failed: str, kind: type[Exception], *, advice: str = ""
) -> Generator[None]:
    """Raise an error of this kind, which names the option and the file, for one of the system."""
    try:
        yield
    except OSError as error:
        problem = f"cannot {what_failed}: {error.strerror or error}"
        raise kind(f"{OPTION} {file} {problem}{advice}") from error


def _write_whole(file: Path, text: str) -> None:
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
