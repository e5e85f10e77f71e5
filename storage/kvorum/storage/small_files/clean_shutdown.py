"""The .kafka_cleanshutdown file: the mark of a broker's clean shutdown, with its epoch."""

import json
from pathlib import Path
from typing import NamedTuple, cast

from kvorum.storage.files import FileSystem, disk_errors, read_if_there, replace_durably

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
_VERSION = 0


class CleanShutdown(NamedTuple):
    """The end of a directory's last use: whether its logs were closed in good order.

    `broker_epoch` is None where it is not known, which the controller takes for an unclean end.
    """

    was_clean: bool
    broker_epoch: int | None


def write_clean_shutdown(directory: Path, files: FileSystem, *, broker_epoch: int) -> None:
    """Write the file, as the last step of a broker's shutdown."""
    content = {"version": _VERSION, "brokerEpoch": broker_epoch}
    path = directory / CLEAN_SHUTDOWN_FILE
    replace_durably(files, path, json.dumps(content, separators=(",", ":")).encode())


def read_clean_shutdown(directory: Path, files: FileSystem) -> CleanShutdown:
    """Return what the file says.

    As in Kafka, an empty file of an older release, or one that cannot be parsed, has no epoch.
    """
    data = read_if_there(files, directory / CLEAN_SHUTDOWN_FILE)
    if data is None:
        return CleanShutdown(was_clean=False, broker_epoch=None)
    return CleanShutdown(was_clean=True, broker_epoch=broker_epoch_of(data))


def take_clean_shutdown(directory: Path, files: FileSystem) -> CleanShutdown:
    """Remove the file and return what it says, as the first step of opening the logs.

    A broker that is stopped before that leaves the directory as clean as it was.
    """
    found = read_clean_shutdown(directory, files)
    if found.was_clean:
        path = directory / CLEAN_SHUTDOWN_FILE
        with disk_errors(path, "removing"):
            files.remove(path)
            files.sync_directory(directory)
    return found


def renew_clean_shutdown(directory: Path, files: FileSystem, *, broker_epoch: int) -> None:
    """Name another broker epoch in the file, if it is there.

    A broker that is registered again and ends in good order before it has opened its logs leaves
    the directory as clean as it was, and the controller asks the next one for the latest epoch.
    """
    found = read_clean_shutdown(directory, files)
    if found.was_clean and found.broker_epoch != broker_epoch:
        write_clean_shutdown(directory, files, broker_epoch=broker_epoch)


def broker_epoch_of(data: bytes) -> int | None:
    """Return the epoch in the file's content, or None where it has none."""
    try:
        content = cast("object", json.loads(data))
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    epoch = cast("dict[str, object]", content).get("brokerEpoch")
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None
