"""Open the log of a topic's partition, with the state of its producers (Kafka's UnifiedLog.create).

The producers' state is the newest stored one, and what the log has after that. After a clean
shutdown that is nothing, and the log is not read. After another end the aborted transactions of the
segments that had to be read are taken from their records.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from kvorum.storage.files import FileSystem
from kvorum.storage.log.local_log import RecoveryPointKeeper
from kvorum.storage.log.log_loader import LogCheckpoint, load_local_log
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles, encode_producer_snapshot
from kvorum.storage.log.producer_state import ProducerState
from kvorum.storage.small_files.partition_metadata import (
    check_partition_metadata,
    write_partition_metadata,
)
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """The place of a log and its partition; `checkpoint` is what its directory stores of it."""

    directory: Path
    topic_partition: TopicPartition
    topic_id: bytes
    checkpoint: LogCheckpoint
    recovery_point_keeper: RecoveryPointKeeper


def load_unified_log(
    place: LogPlace,
    *,
    files: FileSystem,
    config: TopicLogConfig,
    producer_expiration_ms: int,
    random: Random,
    now_ms: int,
) -> UnifiedLog:
    """Open a log, made if need be; `now_ms` is the wall clock, `random` spreads its rolls.

    Raises CorruptFileError for damage, and for a directory of another topic; DiskError.
    """
    directory = place.directory
    producers = ProducerState(producer_expiration_ms)
    snapshots = ProducerSnapshotFiles(
        directory,
        files,
        lambda: encode_producer_snapshot(producers.entries),
        lambda: log.local_log.log_start_offset,
    )
    has_metadata = check_partition_metadata(directory, files, topic_id=place.topic_id)
    loaded = load_local_log(
        directory,
        files=files,
        config=config.segments,
        checkpoint=replace(place.checkpoint, is_compacted=config.cleanup.is_compacted),
        recovery_point_keeper=place.recovery_point_keeper,
        producer_snapshots=snapshots,
        now_ms=now_ms,
    )
    jitter_ms = min(config.segment_jitter_ms, config.segments.segment_ms)
    loaded.log.time_rolls(
        lambda: random.randrange(jitter_ms) if jitter_ms > 0 else 0, now_ms=now_ms
    )
    log = UnifiedLog(place.topic_partition, loaded.log, producers, snapshots, config)
    try:
        if not has_metadata:
            write_partition_metadata(directory, files, topic_id=place.topic_id)
        log.load_producers(now_ms=now_ms, recovered_from=loaded.recovered_from)
    except BaseException:
        log.local_log.abandon()
        raise
    return log
