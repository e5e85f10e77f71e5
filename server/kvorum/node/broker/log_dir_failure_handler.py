"""The way of a broker to go on without a log directory (Kafka's LogDirFailureHandler, KIP-112)."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Signal, Task
from kvorum.node.errors import NodeFailedError
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.errors import DiskError

_log = logging.getLogger(__name__)


class LogDirFailureHandler:
    """Goes on without one failed directory after the other, whichever thread met the failure.

    A broker whose last directory has failed ends, as does one without that of the metadata log. Any
    other is reported to `on_directory_offline`.
    """

    def __init__(
        self,
        broker: ThisBroker,
        replicas: ReplicaManager,
        metadata_directory: Path,
        on_directory_offline: Callable[[Path], None],
    ) -> None:
        self._broker = broker
        self._replicas = replicas
        self._metadata_directory = metadata_directory
        self._on_directory_offline = on_directory_offline
        self._failed: deque[tuple[Path, DiskError]] = deque()
        self._has_failed = Signal(broker.runtime)
        self.channel = LogDirFailureChannel(self._note_in_thread)
        self._task: Task[None] | None = None

    def startup(self) -> None:
        """Handle what has failed already, and what fails from now on."""
        self._task = self._broker.run(self._run())

    def close(self) -> None:
        """Handle nothing more."""
        if self._task is not None:
            self._task.close()

    def _note_in_thread(self, directory: Path, error: DiskError) -> None:
        self._broker.runtime.call_soon_threadsafe(partial(self._note, directory, error))

    def _note(self, directory: Path, error: DiskError) -> None:
        self._failed.append((directory, error))
        self._has_failed.set()

    async def _run(self) -> None:
        while True:
            await self._has_failed.wait()
            self._has_failed.clear()
            while self._failed:
                await self._handle(*self._failed.popleft())

    async def _handle(self, path: Path, error: DiskError) -> None:
        await self._replicas.handle_log_dir_failure(path)
        _log.error(
            LogEvent(
                "A log directory has failed and is offline",
                directory=str(path),
                error=str(error),
                advice="Mend the disk, or replace it and format the directory; restart the broker",
            )
        )
        if path == self._metadata_directory:
            text = f"The log directory of the metadata log, {path}, has failed: {error}"
            self._broker.on_failure(NodeFailedError(text))
        elif not self._replicas.log_directories:
            text = f"All log directories have failed; the last one was {path}: {error}"
            self._broker.on_failure(NodeFailedError(text))
        else:
            self._on_directory_offline(path)
