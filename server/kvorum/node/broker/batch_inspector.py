"""Looks at the records of large batches in a thread, while the event loop serves others.

A batch of a few hundred bytes may unpack to nearly a million records. Looking at each takes most of
a second, packing them again for a topic with another compression takes several.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.storage.topic_log.log_validator import InspectedBatch, small_content
from kvorum.storage.topic_log.timestamp_and_offset import TimestampAndOffset, first_record_since
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK
from kvorum.wire.records.legacy import Entry, LegacyMessage

RECORDS_ON_LOOP_MAX: Final = 4000
"""The number of records that the event loop looks at itself: some milliseconds."""
UNPACKED_BYTES_ON_LOOP_MAX: Final = 128 * 1024
"""The size that they may have when unpacked: few records may have very many headers."""


class BatchInspector:
    """Looks at one large batch after the other: memory is used for one at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kvorum-batches")

    async def inspect(
        self, partition: Partition, batch: RecordBatch, *, required_acks: int, wall_ms: int
    ) -> InspectedBatch | None:
        """Return a batch as it is to be appended; None for a small one that is not packed.

        Raises what `Partition.append_records_to_leader` does.
        """
        if not batch.is_packed and batch.record_count <= RECORDS_ON_LOOP_MAX:
            return None
        content = small_content(
            batch,
            record_count_max=RECORDS_ON_LOOP_MAX,
            unpacked_bytes_max=UNPACKED_BYTES_ON_LOOP_MAX,
        )
        work = partition.inspection(
            batch, required_acks=required_acks, wall_ms=wall_ms, content=content
        )
        if content is not None:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def first_record_since(
        self, log: UnifiedLog, timestamp: int, *, end_offset: int
    ) -> TimestampAndOffset | None:
        """Return the first record below `end_offset` with `timestamp` or a later one.

        Raises StorageError, and `CorruptBatchError` as the function of this name does.
        """
        for batch in log.batches_since(timestamp, end_offset=end_offset):
            work = partial(
                first_record_since,
                batch,
                timestamp,
                start_offset=log.local_log.log_start_offset,
                record_bytes_max=log.config.rules.record_bytes_max,
            )
            if batch.max_timestamp < timestamp or _has_few_records(batch):
                found = work()
            else:
                found = await asyncio.get_running_loop().run_in_executor(self._thread, work)
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Begin with no other batch; the one that is looked at ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _has_few_records(batch: Entry) -> bool:
    if batch.attributes & COMPRESSION_MASK:
        return False
    return isinstance(batch, LegacyMessage) or batch.record_count <= RECORDS_ON_LOOP_MAX
