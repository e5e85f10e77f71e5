"""The .lock file that keeps two nodes out of one data directory, as Kafka's does."""

from pathlib import Path

from kvorum.storage.errors import DirectoryLockedError
from kvorum.storage.files import FileSystem, HeldLock, disk_errors

LOCK_FILE = ".lock"


def lock_directory(directory: Path, files: FileSystem) -> HeldLock:
    """Take the lock of a data directory, created if need be, until it is released.

    Excludes real Kafka and other nodes, in this process as well. Raises DirectoryLockedError where
    another process or node holds it.
    """
    path = directory / LOCK_FILE
    with disk_errors(path, "locking"):
        files.make_directory(directory)
        held = files.lock(path)
    if held is None:
        raise DirectoryLockedError(
            f"Failed to acquire lock on file {LOCK_FILE} in {directory}. A Kafka instance in "
            "another process or thread is using this directory.",
            file=path,
        )
    return held
