"""Reads a partition of ``__consumer_offsets`` into a new shard (CoordinatorLoader)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.groups.loading import replay_batch
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.node.clock import Clock
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.compression import STORED_UNPACKED_BYTES_MAX
from kvorum.wire.records.legacy import LegacyMessage, read_entries

LOAD_BYTES: Final = 64 * 1024
"""How much is read and replayed before others in the event loop have their turn."""


class LoadEndedError(Exception):
    """The shard is of no use any more."""


async def load_shard(
    shard: GroupCoordinatorShard,
    partition: Partition,
    clock: Clock,
    is_wanted: Callable[[], bool],
) -> None:
    """Replay the whole log, also what is not committed yet.

    Compaction may have left gaps, at the end as well. Raises LoadEndedError when the partition is
    not led any more, GroupRecordError, WireError, and StorageError.
    """
    log = partition.log
    offset = log.log_start_offset
    shard.written(offset)
    while offset < log.log_end_offset:
        data = log.read(offset, LOAD_BYTES, end_offset=log.log_end_offset)
        if not data:
            break
        for entry in read_entries(data):
            batch = (
                converted(entry, STORED_UNPACKED_BYTES_MAX)
                if isinstance(entry, LegacyMessage)
                else entry
            )
            replay_batch(shard, batch, clock.wall_ms())
            offset = batch.next_offset
            shard.committed(min(offset, log.high_watermark))
        await asyncio.sleep(0)
        if not is_wanted():
            raise LoadEndedError
        # The replica may have moved to another directory.
        log = partition.log
    shard.written(log.log_end_offset)
    shard.committed(min(log.log_end_offset, log.high_watermark))
