"""The log directories that have failed, each reported once (LogDirFailureChannel, KIP-112)."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from kvorum.storage.errors import DiskError

FailureReceiver: TypeAlias = Callable[[Path, DiskError], None]
"""Takes a log directory and its first failure; called in the thread that met it."""


class LogDirFailureChannel:
    """Passes the first failure of each log directory on; any thread may call."""

    def __init__(self, receiver: FailureReceiver) -> None:
        self._receiver = receiver
        self._offline: set[Path] = set()
        self._lock = threading.Lock()

    def maybe_add_offline_log_dir(self, directory: Path, error: DiskError) -> None:
        """Note a failure of a directory; nothing happens if it is offline already."""
        with self._lock:
            if directory in self._offline:
                return
            self._offline.add(directory)
        self._receiver(directory, error)
