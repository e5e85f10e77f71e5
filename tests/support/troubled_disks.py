"""A kvorum server whose disks are slow, and full while a file says so.

`python tests/support/troubled_disks.py FILE` runs `kvorum server FILE`. Every write and every sync
of a file takes a while, one every some seconds as long as on a disk in trouble. While the file of
`full_mark` is there, nothing fits into a log directory any more: of what would make a file longer
the first half is written, as on a disk that fills up, and then the error of a full disk comes.
"""

import errno
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

from kvorum.cli import main
from kvorum.storage.files import RealOpenFile
from kvorum.storage.small_files.java_properties import load_java_properties

WRITE_S: Final = (0.0, 0.002)
SYNC_S: Final = (0.005, 0.050)
STALL_S: Final = (0.2, 1.0)
BETWEEN_STALLS_S: Final = (1.0, 10.0)


def full_mark(directory: Path) -> Path:
    """Return the file that makes the disk of a log directory full."""
    return directory.with_name(f"{directory.name}.is-full")


def server_command(properties: Path) -> list[str]:
    """Return the command that runs a server on such disks."""
    return [sys.executable, "-P", __file__, str(properties)]


class TroubledDisks:
    """The disks of these log directories: writes and syncs of `RealOpenFile` in their ways."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._random = Random()
        self._next_stall_at = 0.0
        self._write_at = RealOpenFile.write_at
        self._sync = RealOpenFile.sync

    def run(self, properties: Path) -> int:
        """Run a server on them; return its exit code."""

        def write_at(file: RealOpenFile, position: int, data: bytes | memoryview) -> None:
            self._take_time(WRITE_S)
            if self._is_full(file.path) and position + len(data) > file.size():
                self._write_at(file, position, memoryview(data)[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file.path))
            self._write_at(file, position, data)

        def sync(file: RealOpenFile) -> None:
            self._take_time(SYNC_S)
            self._sync(file)

        with (
            patch.object(RealOpenFile, "write_at", write_at),
            patch.object(RealOpenFile, "sync", sync),
        ):
            return main(["server", str(properties)])

    def _take_time(self, usual_s: tuple[float, float]) -> None:
        now = time.monotonic()
        is_stalled = now >= self._next_stall_at
        if is_stalled:
            self._next_stall_at = now + self._random.uniform(*BETWEEN_STALLS_S)
        time.sleep(self._random.uniform(*(STALL_S if is_stalled else usual_s)))

    def _is_full(self, path: Path) -> bool:
        return any(
            path.is_relative_to(directory) and full_mark(directory).exists()
            for directory in self._directories
        )


if __name__ == "__main__":
    server_properties = Path(sys.argv[1])
    settings = load_java_properties(server_properties.read_bytes())
    log_dirs = [Path(name) for name in settings["log.dirs"].split(",")]
    sys.exit(TroubledDisks(log_dirs).run(server_properties))
