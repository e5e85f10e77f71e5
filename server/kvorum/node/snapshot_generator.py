"""Kafka's SnapshotGenerator: snapshots after enough written bytes or enough time."""

import asyncio
import logging
from collections.abc import Iterator

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import encode_record
from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.tasks import wait_for_end

RECORDS_PER_BATCH = 1024
_log = logging.getLogger(__name__)


class SnapshotGenerator:
    """A subscriber of the loader that has the replica write a snapshot when one is due."""

    def __init__(
        self, config: NodeConfig, *, raft: RaftNode, loader: MetadataLoader, clock: Clock
    ) -> None:
        self._after_bytes = config.metadata_log.snapshot_after_bytes
        self._after_ms = config.metadata_log.snapshot_after_ms
        self._raft = raft
        self._loader = loader
        self._clock = clock
        self._last_ms = clock.monotonic_ms()
        self.written_at_ms = self._last_ms
        """When this process finished its latest snapshot; before the first one, when it started."""
        self._task: asyncio.Task[None] | None = None
        loader.subscribe(self._consider)

    async def close(self) -> None:
        """Wait for the snapshot that is being written, if any."""
        if self._task is not None:
            await wait_for_end([self._task])

    def _consider(self, image: MetadataImage) -> None:
        now_ms = self._clock.monotonic_ms()
        is_full = self._loader.bytes_since_snapshot >= self._after_bytes
        is_old = self._after_ms > 0 and now_ms - self._last_ms >= self._after_ms
        if self._task is not None or not (is_full or is_old):
            return
        if image.features.metadata_version is None:
            return
        self._loader.bytes_since_snapshot = 0
        self._last_ms = now_ms
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(
            self._write(
                image,
                end_offset=self._loader.last_offset + 1,
                epoch=self._loader.last_epoch,
                timestamp_ms=self._loader.last_timestamp_ms,
            )
        )
        self._task.add_done_callback(self._finished)

    async def _write(
        self, image: MetadataImage, *, end_offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        is_new = await self._raft.create_snapshot(
            end_offset=end_offset,
            epoch=epoch,
            last_contained_log_timestamp_ms=timestamp_ms,
            values=_batches(image),
        )
        if is_new:
            self.written_at_ms = self._clock.monotonic_ms()
            size = self._raft.snapshot_bytes
            _log.info(LogEvent("Wrote a snapshot", end_offset=end_offset, epoch=epoch, bytes=size))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            _log.error(LogEvent("Writing a snapshot failed", error=str(task.exception())))


def _batches(image: MetadataImage) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for message, version in image_records(image):
        batch.append(encode_record(message, version))
        if len(batch) == RECORDS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
