"""A fetch of a member, which waits until it can acquire enough (Kafka's DelayedShareFetch)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.log_read import LogReadInfo
from kvorum.broker.share_partition.acquisition import FetchedRecords
from kvorum.broker.share_partition.overlapping_records import overlapping_records
from kvorum.broker.share_session.context import ReadSharePartition
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.node.broker.delayed_fetch import FetchResult, read_from_log
from kvorum.node.broker.fetch_params import FetchParams, PartitionFetch
from kvorum.node.broker.purgatories import DelayedOperationPurgatory, WatchedPartition
from kvorum.node.broker.share_fetch.led_share_partition import LedSharePartition
from kvorum.node.broker.share_fetch.partition_max_bytes import partition_max_bytes
from kvorum.node.broker.share_fetch.share_fetch import ShareFetch
from kvorum.node.broker.share_fetch.share_group_metrics import ShareGroupFetchMetrics
from kvorum.node.runtime import Runtime
from kvorum.storage.log.file_records import TruncatedRecordsError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.records.legacy import read_entries

if TYPE_CHECKING:
    from random import Random


class _Acquirable(NamedTuple):
    """A share partition whose fetch lock this fetch has, and the offset that it reads from."""

    partition: TopicIdPartition
    led: LedSharePartition
    offset: int
    max_bytes: int


class DelayedShareFetch:
    """One fetch; `partitions` are those that this broker leads, in the order of the fetch.

    While it reads, it has the fetch locks of what it acquires from: another fetch would read the
    same records.
    """

    def __init__(
        self,
        fetch: ShareFetch,
        partitions: Mapping[TopicIdPartition, LedSharePartition],
        refused: dict[TopicIdPartition, RequestError],
        metrics: ShareGroupFetchMetrics,
        *,
        stats: BrokerTopicStats,
        runtime: Runtime,
        threads: Runtime,
        random: Random,
    ) -> None:
        self._fetch = fetch
        self._partitions = partitions
        self._refused = refused
        self._metrics = metrics
        self._stats = stats
        self._runtime = runtime
        self._threads = threads
        self._random = random
        self._acquirable: list[_Acquirable] = []
        self._acquire_began_ms = runtime.monotonic_ms()

    async def run(self, purgatory: DelayedOperationPurgatory) -> list[ReadSharePartition]:
        """Return what was acquired, once there is enough or the time is up, and the refusals."""
        watched: list[WatchedPartition] = []
        for led in self._partitions.values():
            watched += [led, led.replica]
        try:
            await purgatory.wait_until(
                self._is_complete, watched, timeout_ms=self._fetch.max_wait_ms
            )
            if self._partitions:
                self._acquire_at_last()
            read = await self._read()
        finally:
            self._release_fetch_locks()
        return [*read, *self._refusals()]

    def _is_complete(self) -> bool:
        """Return whether to read now; the fetch locks are held then."""
        self._note_failures()
        if len(self._refused) == len(self._fetch.partitions):
            return True
        self._acquirable = self._lock_acquirable()
        if not self._acquirable:
            return False
        self._record_acquire_time()
        if self._is_min_bytes_satisfied():
            return True
        self._release_fetch_locks(is_told=False)
        return False

    def _acquire_at_last(self) -> None:
        """Hold what fetch locks there are, now that the fetch waits no more."""
        if not self._acquirable:
            self._acquirable = self._lock_acquirable()
            self._record_acquire_time()
        self._metrics.record_fetch(
            acquired_count=len(self._acquirable), requested_count=len(self._fetch.partitions)
        )

    def _record_acquire_time(self) -> None:
        """Record how long the fetch has waited for fetch locks since it had some last."""
        now_ms = self._runtime.monotonic_ms()
        self._metrics.acquire_times_ms.record(now_ms - self._acquire_began_ms)
        self._acquire_began_ms = now_ms

    def _note_failures(self) -> None:
        for partition, led in self._partitions.items():
            if led.failure is not None:
                self._refused.setdefault(partition, led.failure)

    def _lock_acquirable(self) -> list[_Acquirable]:
        """Take the fetch locks of the share partitions that may have something to acquire."""
        now_ms = self._runtime.monotonic_ms()
        locked: list[tuple[TopicIdPartition, LedSharePartition]] = []
        for partition, led in self._partitions.items():
            state = led.state
            if not state.maybe_acquire_fetch_lock(self, now_ms):
                continue
            if state.can_acquire_records():
                locked.append((partition, led))
            else:
                led.metrics.record_fetch_lock(state.release_fetch_lock(now_ms))
        if not locked:
            return []
        shares = partition_max_bytes(self._fetch.max_bytes, len(locked), len(locked), self._random)
        return [
            _Acquirable(partition, led, led.state.next_fetch_offset(), max_bytes)
            for (partition, led), max_bytes in zip(locked, shares, strict=True)
        ]

    def _is_min_bytes_satisfied(self) -> bool:
        """Return whether there is enough to read, or something to report."""
        wanted = self._fetch.min_bytes
        available = 0
        for one in self._acquirable:
            if not one.led.is_led:
                return True
            size = one.led.replica.bytes_available(
                one.offset, one.max_bytes, isolation=self._fetch.isolation, wanted=wanted
            )
            if size is None:
                return True
            available += size
        return available >= wanted

    def _release_fetch_locks(self, *, is_told: bool = True) -> None:
        """Let others acquire from the share partitions, and have them look unless nothing came."""
        now_ms = self._runtime.monotonic_ms()
        released = self._acquirable
        self._acquirable = []
        for one in released:
            one.led.metrics.record_fetch_lock(one.led.state.release_fetch_lock(now_ms))
        if is_told:
            for one in released:
                one.led.watchers.notify()

    async def _read(self) -> list[ReadSharePartition]:
        """Read from the logs, and acquire what was read."""
        fetch = self._fetch
        acquirable = self._acquirable
        if not acquirable:
            return []
        params = FetchParams(
            max_wait_ms=0,
            min_bytes=fetch.min_bytes,
            max_bytes=fetch.max_bytes,
            isolation=fetch.isolation,
        )
        asked = [
            PartitionFetch(
                one.led.replica,
                one.offset,
                one.max_bytes,
                NO_EPOCH,
                topic_id=one.partition.topic_id,
            )
            for one in acquirable
        ]
        for read_from in asked:
            self._stats.on_fetch_request(read_from.partition.topic_partition.topic)
        results = await read_from_log(asked, params, self._threads)
        left = fetch.max_records
        read: list[ReadSharePartition] = []
        for one, result in zip(acquirable, results, strict=True):
            data, count = self._acquire(one, result, left)
            left -= count
            read.append(ReadSharePartition(one.partition, data))
        return read

    def _acquire(
        self, one: _Acquirable, result: FetchResult, max_records: int
    ) -> tuple[ShareFetchResponse.PartitionData, int]:
        """Return what the response has of a partition, and how many records were acquired."""
        data = ShareFetchResponse.PartitionData(one.partition.partition, records=b"")
        if result.read is None:
            self._note_error(one, data, result.error)
            return data, 0
        try:
            return data, self._acquire_read(one, result.read, data, max_records)
        except (OSError, TruncatedRecordsError):
            data.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        except CorruptBatchError:
            data.error_code = ErrorCode.CORRUPT_MESSAGE
        return data, 0

    def _acquire_read(
        self,
        one: _Acquirable,
        read: LogReadInfo,
        data: ShareFetchResponse.PartitionData,
        max_records: int,
    ) -> int:
        """Acquire records that were read, fill `data` with them, and return how many they are.

        Raises OSError, TruncatedRecordsError, and CorruptBatchError.
        """
        records = memoryview(bytes(read.records))
        entries = list(read_entries(records, is_cut_allowed=True))
        acquired = one.led.state.acquire(
            self._fetch.acquirer,
            FetchedRecords(one.offset, entries, read.aborted),
            max_records=max_records,
            now_ms=self._runtime.monotonic_ms(),
        )
        one.led.arm()
        one.led.metrics.record_new_batches(acquired.new_batch_sizes)
        if acquired.batches:
            data.acquired_records = acquired.batches
            data.records = bytes(overlapping_records(records, entries, acquired.batches))
        return acquired.record_count

    def _note_error(
        self, one: _Acquirable, data: ShareFetchResponse.PartitionData, code: ErrorCode
    ) -> None:
        """Report an error; where the log begins later by now, move the start to it instead."""
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            one.led.state.move_log_start(one.led.replica.log.log_start_offset)
        else:
            data.error_code = code

    def _refusals(self) -> list[ReadSharePartition]:
        self._note_failures()
        return [
            ReadSharePartition(
                partition,
                ShareFetchResponse.PartitionData(
                    partition.partition, error_code=error.code, records=b""
                ),
            )
            for partition, error in self._refused.items()
        ]
