"""Reads the originals of dead letters from the log of their partition."""

import logging
from typing import Final

from kvorum.broker.dead_letter_queue.original_records import OriginalRecords
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.partition import Partition
from kvorum.node.broker.delayed_fetch import read_from_log
from kvorum.node.broker.fetch_params import FetchParams, PartitionFetch
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.storage.log.file_records import TruncatedRecordsError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records.legacy import read_entries

READ_BYTES_MAX: Final = 1024 * 1024
"""The size of one read of the log."""
_PARAMS: Final = FetchParams(
    max_wait_ms=0,
    min_bytes=1,
    max_bytes=READ_BYTES_MAX,
    isolation=IsolationLevel.READ_UNCOMMITTED,
)
_log = logging.getLogger(__name__)


async def read_original_records(
    originals: OriginalRecords, replica: Partition, threads: Runtime
) -> None:
    """Read until nothing more is to be read now; those that cannot be read are left out.

    The broker leads the replica. What is not at hand is read by `threads`.
    """
    while not originals.is_complete:
        offset = originals.next_offset
        problem = await _read(originals, replica, threads)
        if problem is not None:
            _log.warning(
                LogEvent(
                    "Records are not copied to a dead-letter queue",
                    partition=str(replica.topic_partition),
                    first_offset=offset,
                    error=problem,
                )
            )
            originals.give_up()


async def _read(originals: OriginalRecords, replica: Partition, threads: Runtime) -> str | None:
    """Read once; return what is wrong if nothing could be read."""
    offset = originals.next_offset
    asked = PartitionFetch(replica, offset, READ_BYTES_MAX, replica.leader_epoch)
    (result,) = await read_from_log([asked], _PARAMS, threads)
    if result.read is None:
        return result.error.default_message
    try:
        records = memoryview(bytes(result.read.records))
        originals.collect(read_entries(records, is_cut_allowed=True))
    except (OSError, TruncatedRecordsError, CorruptBatchError) as error:
        return str(error)
    has_none = originals.next_offset == offset and not originals.is_complete
    return ErrorCode.OFFSET_OUT_OF_RANGE.default_message if has_none else None
