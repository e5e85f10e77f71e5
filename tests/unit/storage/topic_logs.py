"""Logs of topics in memory, and the batches that producers send them."""

from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Any

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.log_config import DAY_MS
from kvorum.storage.topic_log.log_validator import RecordRules
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig, TopicSegmentConfig
from kvorum.storage.topic_log.unified_log import LogAppendInfo, UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    encode_control_record,
    read_batches,
)

NOW_MS = 1_000_000
PARTITION = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
CONFIG = TopicLogConfig(
    segments=TopicSegmentConfig(
        segment_bytes=600, index_interval_bytes=100, delete_delay_ms=0, is_flushed_on_roll=True
    ),
    rules=RecordRules(timestamp_before_max_ms=2**62, timestamp_after_max_ms=2**62),
    max_message_bytes=500,
    cleanup=CleanupConfig(),
)


def flush(log: UnifiedLog) -> None:
    log.local_log.flush()


def managed(
    directories: list[LogDirectory],
    hosted: Callable[[TopicPartition], bytes | None] = lambda _: None,
    assigned: Callable[[TopicPartition], bytes | None] = lambda _: None,
    config: TopicLogConfig = CONFIG,
    threads: DiskThreads | None = None,
    cordoned: Collection[Path] = (),
) -> LogManager:
    """Return a manager that has loaded the logs of the partitions that are hosted."""
    manager = LogManager(
        LogManagerSettings(delete_delay_ms=50),
        config_of=lambda _topic: config,
        producer_expiration_ms=lambda: DAY_MS,
        random=Random(1),
        threads=threads,
        cordoned=lambda: cordoned,
    )
    manager.startup(directories, hosted, now_ms=NOW_MS, assigned=assigned)
    return manager


def log_in(manager: LogManager, partition: TopicPartition = PARTITION) -> UnifiedLog:
    log = manager.get_log(partition)
    assert log is not None
    return log


def batch_of(*records: RecordData, **options: Any) -> RecordBatch:
    (batch,) = read_batches(build_batch(records, BatchOptions(**options)))
    return batch


def marker(kind: ControlRecordType, *, coordinator_epoch: int = 1, **options: Any) -> RecordBatch:
    record = ControlRecord(kind, EndTxnMarker(coordinator_epoch))
    return batch_of(
        encode_control_record(record, 6), is_transactional=True, is_control=True, **options
    )


def sent(value: bytes, *, sequence: int = -1, producer: int = -1, time_ms: int = 5) -> RecordBatch:
    """Return a batch of one record, as a producer sends it."""
    return batch_of(
        RecordData(value, None, time_ms),
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 0,
        base_sequence=sequence,
    )


def append(log: UnifiedLog, batch: RecordBatch) -> LogAppendInfo:
    return log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)


def values_in(log: UnifiedLog) -> list[bytes | None]:
    found: list[bytes | None] = []
    offset = log.log_start_offset
    end = log.log_end_offset
    while offset < end:
        for batch in read_batches(log.local_log.read(offset, 1 << 20, end_offset=end)):
            found += [record.value for record in batch.records()]
            offset = batch.next_offset
    return found


def transactional(value: bytes, *, sequence: int) -> RecordBatch:
    """Return a batch of one record in a transaction of producer 7."""
    return batch_of(
        RecordData(value, None, 5),
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def abort_marker() -> RecordBatch:
    return marker(ControlRecordType.ABORT, coordinator_epoch=5, producer_id=7, producer_epoch=0)
