"""Looks at the records of large batches in threads, while the event loop serves others.

A batch of a few hundred bytes may unpack to a million records, or to gigabytes. Looking at each of
a million takes most of a second, packing them again for a topic with another compression takes
several. So there are two threads: batches that turn out to be giants go to the second one, and only
other giants wait for them. As in Kafka, a giant is taken however long that takes: its bytes are
never in memory together, and its producer has one such batch in flight for each connection.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from kvorum.broker.partition import Partition
from kvorum.node.coroutines import GiveUp, OneAtATime, Take, Wait, in_thread
from kvorum.node.runtime import Runtime
from kvorum.storage.topic_log.log_validator import InspectedBatch, small_content
from kvorum.storage.topic_log.timestamp_and_offset import TimestampAndOffset, first_record_since
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK
from kvorum.wire.records.legacy import Entry, LegacyMessage
from kvorum.wire.records.size_check import SizeCheck, any_size

RECORDS_ON_LOOP_MAX: Final = 4000
"""The number of records that the event loop looks at itself: some milliseconds."""
UNPACKED_BYTES_ON_LOOP_MAX: Final = 128 * 1024
"""The size that they may have when unpacked: few records may have very many headers."""
GIANT_RECORDS_MIN: Final = 1_000_000
GIANT_BYTES_MIN: Final = 16 * 1024 * 1024
"""The unpacked size of a giant: less than that, or than so many records, takes about a second."""
THREAD_COUNT: Final = 2
"""The number of threads that the runtime has: one for giants, one for all others."""

_T = TypeVar("_T")


class _ClosedError(Exception):
    """The inspector was closed before the work on the batch had ended."""


class _GiantError(Exception):
    """The batch unpacks to so much that it is to be looked at in the other thread."""


class BatchInspector:
    """Looks at one large batch after the other, and at one giant beside them.

    The runtime has `THREAD_COUNT` threads, which do nothing else. After `close` no wait for them
    ends: the request goes on no more, and appends nothing.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._batches = OneAtATime(runtime)
        self._giants = OneAtATime(runtime)
        self._is_closed = False

    async def inspect(
        self, partition: Partition, batch: RecordBatch, *, required_acks: int, wall_ms: int
    ) -> InspectedBatch:
        """Return a batch as it is to be appended.

        Raises what `Partition.append_records_to_leader` does.
        """
        content = small_content(
            batch,
            record_count_max=RECORDS_ON_LOOP_MAX,
            unpacked_bytes_max=UNPACKED_BYTES_ON_LOOP_MAX,
        )
        work = partition.inspection(
            batch, required_acks=required_acks, wall_ms=wall_ms, content=content
        )
        if content is not None:
            return work(any_size)
        return await self._in_thread(work, batch.record_count)

    async def first_record_since(
        self, log: UnifiedLog, timestamp: int, *, end_offset: int, disk_threads: Runtime
    ) -> TimestampAndOffset | None:
        """Return the first record below `end_offset` with `timestamp` or a later one.

        The log is read by `disk_threads`, since what is searched is seldom in the page cache.
        Raises StorageError, and `CorruptBatchError` as the function of this name does.
        """
        reads = log.batches_since(timestamp, end_offset=end_offset)
        batches = await in_thread(disk_threads, partial(next, reads, None))
        while batches is not None:
            for batch in batches:
                found = await self._first_record_in(batch, timestamp, log)
                if found is not None:
                    return found
            batches = await in_thread(disk_threads, partial(next, reads, None))
        return None

    async def _first_record_in(
        self, batch: Entry, timestamp: int, log: UnifiedLog
    ) -> TimestampAndOffset | None:
        search = _search_in(batch, timestamp, log)
        if batch.max_timestamp < timestamp or _has_few_records(batch):
            return search(any_size)
        record_count = 0 if isinstance(batch, LegacyMessage) else batch.record_count
        return await self._in_thread(search, record_count)

    async def _in_thread(self, work: Callable[[SizeCheck], _T], record_count: int) -> _T:
        """Do work on a batch, which passes on the size that the records have so far."""
        result: _T
        if record_count < GIANT_RECORDS_MIN:
            try:
                result = await self._look(self._batches, work, self._check_not_giant)
                return result
            except _GiantError:
                # It begins again: what was done is at most as much as for other batches.
                pass
        result = await self._look(self._giants, work, self._check_open)
        return result

    def _look(
        self, thread: OneAtATime, work: Callable[[SizeCheck], _T], check_size: SizeCheck
    ) -> Wait[_T]:
        """Return the wait for work in a thread; after `close` it has no end, and begins nothing."""

        def look() -> _T:
            self._check_open(0)
            return work(check_size)

        def begin(take: Take[_T]) -> GiveUp:
            def take_if_open(result: _T | Exception) -> None:
                if not self._is_closed:
                    take(result)

            if self._is_closed:
                return _give_up_nothing
            return thread.in_thread(look).begin(take_if_open)

        return Wait(begin)

    def _check_open(self, _: int) -> None:
        if self._is_closed:
            raise _ClosedError

    def _check_not_giant(self, size: int) -> None:
        self._check_open(size)
        if size >= GIANT_BYTES_MIN:
            raise _GiantError

    def close(self) -> None:
        """Begin with no other batch, and end the work on those that are being looked at."""
        self._is_closed = True


def is_to_be_inspected(batch: RecordBatch) -> bool:
    """Return whether the event loop should not look at a batch itself while it appends it."""
    return batch.is_packed or batch.record_count > RECORDS_ON_LOOP_MAX


def _give_up_nothing() -> None:
    pass


def _search_in(
    batch: Entry, timestamp: int, log: UnifiedLog
) -> Callable[[SizeCheck], TimestampAndOffset | None]:
    start_offset = log.log_start_offset
    record_bytes_max = log.config.rules.record_bytes_max

    def search(check_size: SizeCheck) -> TimestampAndOffset | None:
        return first_record_since(
            batch,
            timestamp,
            start_offset=start_offset,
            record_bytes_max=record_bytes_max,
            check_size=check_size,
        )

    return search


def _has_few_records(batch: Entry) -> bool:
    if batch.attributes & COMPRESSION_MASK:
        return False
    return isinstance(batch, LegacyMessage) or batch.record_count <= RECORDS_ON_LOOP_MAX
