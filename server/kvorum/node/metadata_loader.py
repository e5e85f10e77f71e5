"""Kafka's MetadataLoader and SnapshotGenerator, which both roles share.

The one makes images of committed batches, the other snapshots of them after enough written bytes or
enough time.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.partition import RECOVERING
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Promise, Pulse, Task, other_work
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metrics.sensors import LatestValues, WindowedSensor
from kvorum.node.raft import CommittedBatch, LoadedSnapshot, RaftNode
from kvorum.node.runtime import Runtime
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.primitives import Message

FramedRecord = tuple[Message, int, int]
"""A record with its version and its offset."""
Subscriber = Callable[[MetadataImage], None]
PIECE_RECORDS = 2000
"""The number of records that are applied in one turn of the event loop: some 20 ms."""
_log = logging.getLogger(__name__)
RECORDS_PER_BATCH = 1024


class ElectionCounts:
    """Counts elections outside the ISR in applied records: unclean ones, and those from the ELR."""

    def __init__(self) -> None:
        self.unclean = 0
        self.from_elr = 0

    def watch(
        self, image: MetadataImage, records: Iterable[FramedRecord]
    ) -> Iterator[FramedRecord]:
        """Yield `records`, which are about to be applied to `image`, and count their elections."""
        changed: dict[tuple[bytes, int], tuple[int, ...]] = {}
        for record in records:
            message = record[0]
            if type(message) is PartitionChangeRecord:
                self._note(image, message, changed)
            yield record

    def _note(
        self,
        image: MetadataImage,
        change: PartitionChangeRecord,
        changed: dict[tuple[bytes, int], tuple[int, ...]],
    ) -> None:
        """Count a change; `changed` are the eligible leaders that earlier records have set."""
        key = (change.topic_id, change.partition_id)
        if change.leader_recovery_state == RECOVERING:
            self.unclean += 1
        if change.leader >= 0:
            eligible = changed.get(key)
            if eligible is None:
                partition = image.topics.partition(*key)
                eligible = () if partition is None else partition.elr
            if change.leader in eligible:
                self.from_elr += 1
        if change.eligible_leader_replicas is not None:
            changed[key] = tuple(change.eligible_leader_replicas)


class MetadataLoaderMetrics:
    """The measurements that the loader reports."""

    def __init__(self, now_ms: float) -> None:
        self.snapshot_count = 0
        self.publishing_fault_count = 0
        self.batch_us = LatestValues()
        self.batch_sizes = LatestValues()
        self.busy_ms = WindowedSensor(now_ms)
        self.elections = ElectionCounts()

    def caught_up(self) -> None:
        """Discard the counted elections: those in the log as it was at the start are history."""
        self.elections = ElectionCounts()

    def folded(self, record_count: int, *, started_ms: float, ended_ms: float) -> None:
        """Record that a batch was applied."""
        duration_ms = ended_ms - started_ms
        self.batch_sizes.record(record_count)
        self.batch_us.record(duration_ms * 1000)
        self.busy_ms.record(duration_ms, ended_ms)

    def idle_ratio(self, now_ms: float) -> float:
        """Return the share of time in which no batch was being applied."""
        return max(1 - self.busy_ms.rate_per_second(now_ms) / 1000, 0.0)


class MetadataLoader:
    """Applies committed records to an image and publishes it to subscribers.

    `image` contains everything committed, an open metadata transaction included; `published`, the
    latest one outside of a transaction, is what every part except the controller acts on.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.measures = MetadataLoaderMetrics(self._clock.monotonic_ms())
        self.image = self.published = MetadataImage()
        self.last_offset = -1
        self.last_epoch = 0
        self.last_timestamp_ms = 0
        self.bytes_since_snapshot = 0
        self.published_offset = -1
        self.features_offset = -1
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber, *, doing: str | None = None) -> None:
        """Call `subscriber` with every image published from now on.

        Its errors stop the replica. Where the node can do without what it does, `doing` says what
        that is: its errors are then logged and counted (Kafka's metadata publishing faults).
        """
        self._subscribers.append(
            subscriber if doing is None else self._with_faults(subscriber, doing)
        )

    def _with_faults(self, subscriber: Subscriber, doing: str) -> Subscriber:
        def on_image(image: MetadataImage) -> None:
            try:
                subscriber(image)
            except Exception as error:  # noqa: BLE001 - the values of before stay
                self.measures.publishing_fault_count += 1
                _log.error(LogEvent("A metadata publishing fault", doing=doing), exc_info=error)

        return on_image

    def load_snapshot(self, snapshot: LoadedSnapshot) -> None:
        """Replace the image by that of a snapshot; raises `MetadataError`."""
        for _ in self.load_in_pieces(snapshot):
            pass

    def load_in_pieces(self, snapshot: LoadedSnapshot) -> Iterator[None]:
        """Do the same piece by piece; the image changes only with the last piece."""
        last_offset = snapshot.end_offset - 1
        image = MetadataImage()
        records = _decoded(chain.from_iterable(snapshot.values), last_offset, step=0)
        for first in records:
            image = image.apply_all(chain((first,), islice(records, PIECE_RECORDS - 1)))
            yield
        self.image = replace(image, last_offset=last_offset)
        self.last_offset = last_offset
        self.last_epoch = snapshot.epoch
        self.last_timestamp_ms = snapshot.last_contained_log_timestamp_ms
        self.bytes_since_snapshot = 0
        self.features_offset = last_offset
        self.measures.snapshot_count += 1
        _log.info(
            LogEvent("Loaded a snapshot", end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        )
        self._publish()

    def commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Apply committed batches to the image; raises `MetadataError`."""
        for _ in self.commit_in_pieces(batches):
            pass

    def commit_in_pieces(self, batches: Sequence[CommittedBatch]) -> Iterator[None]:
        """Do the same piece by piece; the image changes only with the last piece."""
        image = self.image
        folded = 0
        for batch in batches:
            started_ms, busy_ms = self._clock.monotonic_ms(), 0.0
            for first in range(0, len(batch.values), PIECE_RECORDS):
                piece = batch.values[first : first + PIECE_RECORDS]
                if folded + len(piece) > PIECE_RECORDS:
                    yield
                    folded = 0
                piece_started_ms = self._clock.monotonic_ms()
                records = _decoded(piece, batch.base_offset + first, step=1)
                image = image.apply_all(self.measures.elections.watch(image, records))
                busy_ms += self._clock.monotonic_ms() - piece_started_ms
                folded += len(piece)
            if batch.values:
                self.measures.folded(
                    len(batch.values), started_ms=started_ms, ended_ms=started_ms + busy_ms
                )
        self._take(image, batches)

    def _take(self, image: MetadataImage, batches: Sequence[CommittedBatch]) -> None:
        """Make `image`, which contains all of `batches`, the current one, and publish it."""
        last = batches[-1]
        self.last_offset = last.last_offset
        self.last_epoch = last.epoch
        self.last_timestamp_ms = last.append_timestamp_ms
        self.bytes_since_snapshot += sum(batch.size_bytes for batch in batches)
        if image.features is not self.image.features:
            self.features_offset = self.last_offset
        self.image = image
        self._publish()

    def _publish(self) -> None:
        self.published = self.image.published
        if self.image.transaction is not None:
            return
        self.published_offset = self.last_offset
        for subscriber in self._subscribers:
            subscriber(self.image)


class PublishedImages:
    """The images that a loader publishes, for coroutines on a runtime that wait for one of them."""

    def __init__(self, loader: MetadataLoader, runtime: Runtime) -> None:
        self._loader = loader
        self._published = Pulse(runtime)
        loader.subscribe(self._tell)

    async def wait_for(
        self, condition: Callable[[MetadataImage], bool], timeout_ms: float | None = None
    ) -> bool:
        """Wait until the published image fulfils `condition`; return whether it does in time."""
        return await self._published.until(lambda: condition(self._loader.published), timeout_ms)

    def _tell(self, image: MetadataImage) -> None:
        del image
        self._published.beat()


def _decoded(
    values: Iterable[bytes], first_offset: int, *, step: int
) -> Iterator[tuple[Message, int, int]]:
    """Yield message, version and offset; all records of a snapshot have its last offset."""
    for index, value in enumerate(values):
        message, version = decode_record(value)
        yield message, version, first_offset + step * index


class SnapshotGenerator:
    """A subscriber of the loader that has the replica write a snapshot when one is due."""

    def __init__(
        self, config: NodeConfig, *, raft: RaftNode, loader: MetadataLoader, runtime: Runtime
    ) -> None:
        self._after_bytes = config.metadata_log.snapshot_after_bytes
        self._after_ms = config.metadata_log.snapshot_after_ms
        self._raft = raft
        self._loader = loader
        self._runtime = runtime
        self._last_ms = runtime.monotonic_ms()
        self.written_at_ms = self._last_ms
        """When this process finished its latest snapshot; before the first one, when it started."""
        self._end: Promise[None] | None = None
        """The end of the snapshot that is being written, if any."""
        loader.subscribe(self._consider)

    async def close(self) -> None:
        """Wait for the snapshot that is being written, if any; raises the error if it fails."""
        if self._end is not None:
            await self._end.result()

    def _consider(self, image: MetadataImage) -> None:
        now_ms = self._runtime.monotonic_ms()
        is_full = self._loader.bytes_since_snapshot >= self._after_bytes
        is_old = self._after_ms > 0 and now_ms - self._last_ms >= self._after_ms
        if self._end is not None or not (is_full or is_old):
            return
        if image.features.metadata_version is None:
            return
        self._loader.bytes_since_snapshot = 0
        self._last_ms = now_ms
        self._end = Promise(self._runtime)
        writing = self._write(
            image,
            end_offset=self._loader.last_offset + 1,
            epoch=self._loader.last_epoch,
            timestamp_ms=self._loader.last_timestamp_ms,
        )
        Task(writing, partial(self._finished, self._end))

    async def _write(
        self, image: MetadataImage, *, end_offset: int, epoch: int, timestamp_ms: int
    ) -> None:
        # The replica counts what is published as applied only after this turn.
        await other_work(self._runtime)
        is_new = await self._raft.create_snapshot(
            end_offset=end_offset,
            epoch=epoch,
            last_contained_log_timestamp_ms=timestamp_ms,
            values=_batches(image),
        )
        if is_new:
            self.written_at_ms = self._runtime.monotonic_ms()
            size = self._raft.snapshot_bytes
            _log.info(LogEvent("Wrote a snapshot", end_offset=end_offset, epoch=epoch, bytes=size))

    def _finished(self, end: Promise[None], result: Exception | None) -> None:
        self._end = None
        end.settle(result)
        if result is not None:
            _log.error(LogEvent("Writing a snapshot failed", error=str(result)))


def _batches(image: MetadataImage) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for message, version in image_records(image):
        batch.append(encode_record(message, version))
        if len(batch) == RECORDS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
