"""The start of a share partition whose state is new (``share.auto.offset.reset``)."""

from typing import Final

from kvorum.broker.partition import Partition
from kvorum.metadata.api import RequestError
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.java_text import parse_java_duration_ns

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_DURATION_BEGIN: Final = "by_duration:"
_NS_PER_MS: Final = 1_000_000


async def start_offset(
    partition: Partition,
    reset: str,
    inspector: BatchInspector,
    *,
    leader_epoch: int,
    disk_threads: Runtime,
    wall_ms: int,
) -> int:
    """Return the offset that a group's reset strategy stands for, at the time `wall_ms`.

    It is the start or the committed end of the log, or the first record that is no older than a
    duration. Raises RequestError OFFSET_NOT_AVAILABLE where no record is as young as that, and
    where this leader may not know the committed end yet (KIP-207). Also raises LeaderRefusesError,
    as in another epoch than `leader_epoch`, StorageError, and CorruptBatchError.
    """
    partition.check_current_leader_epoch(leader_epoch)
    leader = partition.demand_leader()
    log = partition.log
    if reset == EARLIEST:
        return log.log_start_offset
    end_offset = log.high_watermark
    if reset == LATEST:
        if not leader.is_offset_available:
            raise RequestError.with_default_message(ErrorCode.OFFSET_NOT_AVAILABLE)
        return end_offset
    age_ms = parse_java_duration_ns(reset.removeprefix(_DURATION_BEGIN)) // _NS_PER_MS
    found = await inspector.first_record_since(
        log, wall_ms - age_ms, end_offset=end_offset, disk_threads=disk_threads
    )
    if found is None:
        raise RequestError.with_default_message(ErrorCode.OFFSET_NOT_AVAILABLE)
    return found.offset
