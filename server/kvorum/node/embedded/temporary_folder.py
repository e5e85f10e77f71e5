"""Temporary folders of clusters; one that a killed process has left is removed by the next process.

A process that SIGTERM ends removes nothing. So each folder has a file that its process holds a lock
on, which ends with the process, however that ends. The file is removed last: where a removal is
interrupted, the next process finds the folder by it.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOCK_NAME: Final = ".in-use"
UNFINISHED_LOCK_NAME: Final = ".in-use-soon"
MAKING_SECONDS_MAX: Final = 60
"""The time after which a folder without a lock is not being made any more: that takes no second."""


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """A folder that this process uses, and the descriptor that holds its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder as far as the system permits, and end the lock."""
        try:
            with suppress(OSError):
                _remove(self.path)
        finally:
            os.close(self.lock)


def make_temporary_folder(prefix: str) -> TemporaryFolder:
    """Return a new folder, after those of this prefix are removed whose processes have ended."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    made = TemporaryFolder(folder, _locked(folder))
    try:
        _remove_unused_folders(prefix, now_s=folder.lstat().st_mtime)
    except BaseException:
        made.remove()
        raise
    return made


def _locked(folder: Path) -> int:
    """Lock a folder for this process, and return the descriptor that holds the lock."""
    unfinished = folder / UNFINISHED_LOCK_NAME
    descriptor = os.open(unfinished, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Under its name the file is never without a lock while the folder is in use.
    unfinished.rename(folder / LOCK_NAME)
    return descriptor


def _remove_unused_folders(prefix: str, *, now_s: float) -> None:
    """Remove the folders of this user's that no process uses; `now_s` is in seconds since 1970."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # It is in use, another user's, just being made, or of a release without locks.
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid != os.getuid():
                continue
            if (folder / LOCK_NAME).exists():
                _remove_unused(folder)
            elif now_s - status.st_mtime > MAKING_SECONDS_MAX:
                _remove_unmade(folder)


def _remove_unused(folder: Path) -> None:
    """Remove a folder with a lock; raises OSError if it is in use."""
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(descriptor)


def _remove_unmade(folder: Path) -> None:
    """Remove a folder that was never used, or all but removed; raises OSError if it has data."""
    (folder / UNFINISHED_LOCK_NAME).unlink(missing_ok=True)
    folder.rmdir()


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last; raises OSError, with the lock in place, if data is left."""
    for entry in list(os.scandir(folder)):
        if entry.name == LOCK_NAME:
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink(missing_ok=True)
    lock = folder / LOCK_NAME
    if list(folder.iterdir()) == [lock]:
        lock.unlink()
        folder.rmdir()
