"""Temporary folders of clusters; one that a killed process has left is removed by the next process.

A process that SIGTERM ends removes nothing. So each folder has a file that its process holds a lock
on, which ends with the process, however that ends.
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


@dataclass(frozen=True, slots=True)
class TemporaryFolder:
    """A folder that this process uses, and the descriptor that holds its lock."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder, and end the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def make_temporary_folder(prefix: str) -> TemporaryFolder:
    """Return a new folder, after those of this prefix are removed whose processes have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        # It is in use, another user's, just being made, or of a release without locks.
        with suppress(OSError):
            _remove_unused(folder)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    return TemporaryFolder(folder, _locked(folder))


def _locked(folder: Path) -> int:
    """Lock a folder for this process, and return the descriptor that holds the lock."""
    unfinished = folder / UNFINISHED_LOCK_NAME
    descriptor = os.open(unfinished, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Under its name the file is never without a lock while the folder is in use.
    unfinished.rename(folder / LOCK_NAME)
    return descriptor


def _remove_unused(folder: Path) -> None:
    """Remove a folder of this user's; raises OSError if it is in use or has no lock."""
    if folder.lstat().st_uid != os.getuid():
        return
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
