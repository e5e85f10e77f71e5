"""Made-up clusters' metadata log directories, written as a controller's disk has them."""

from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.fleet.cluster_story import BEGIN_MS, CONTROLLER_IDS, Batch, ClusterStory

from kvorum.metadata.record_frame import encode_record
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.meta_properties import MetaProperties, write_meta_properties
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    build_data_batch,
)
from kvorum.wire.uuid_text import uuid_to_text

SEGMENT_BYTES = 64 * 1024 * 1024
APPEND_BYTES_MAX = 1024 * 1024
UUID_BYTES = 16
YEAR_MS = 365 * 86_400_000
CLUSTERS: Final = 20
_PARTITIONS: Final = 1200


def write_cluster(directory: Path, seed: int, *, records: int, partitions: int = 1200) -> int:
    """Write the log of one cluster with at least `records` records; return how many it has.

    The cluster has about `partitions` partitions. The same seed gives the same bytes.
    """
    random = Random(seed)
    files = RealFileSystem()
    directory.mkdir(parents=True)
    properties = MetaProperties(
        cluster_id=uuid_to_text(random.randbytes(UUID_BYTES)),
        node_id=CONTROLLER_IDS[0],
        directory_id=random.randbytes(UUID_BYTES),
    )
    begin = datetime.fromtimestamp(BEGIN_MS / 1000, UTC)
    write_meta_properties(directory, properties, files, now=begin)
    config = LogConfig(segment_bytes=SEGMENT_BYTES, segment_ms=YEAR_MS)
    log_directory = directory / METADATA_LOG_DIRECTORY
    log = MetadataLog.open(log_directory, files=files, config=config, now_ms=BEGIN_MS).local_log
    pending = bytearray()
    offset = 0
    for batch in ClusterStory(seed, partitions=partitions).batches(records):
        pending += _batch_bytes(batch, offset)
        offset += batch.record_count
        if len(pending) > APPEND_BYTES_MAX:
            log.append(bytes(pending))
            pending.clear()
    if pending:
        log.append(bytes(pending))
    log.close()
    return offset


def _batch_bytes(batch: Batch, offset: int) -> bytes:
    if not batch.records:
        voters = [LeaderChangeMessage.Voter(voter_id=one) for one in CONTROLLER_IDS]
        message = LeaderChangeMessage(
            leader_id=batch.leader_id, voters=voters, granting_voters=voters[:2]
        )
        return build_control_batch(
            [ControlRecord(ControlRecordType.LEADER_CHANGE, message)],
            base_offset=offset,
            epoch=batch.epoch,
            timestamp_ms=batch.at_ms,
        )
    return build_data_batch(
        [encode_record(message, version) for message, version in batch.records],
        base_offset=offset,
        epoch=batch.epoch,
        timestamp_ms=batch.at_ms,
    )


def write_fleet(folder: Path, *, records: int) -> None:
    """Write the logs of its clusters, with so many records in all."""
    for number in range(CLUSTERS):
        directory = folder / f"cluster-{number:02}"
        write_cluster(directory, number + 1, records=records // CLUSTERS, partitions=_PARTITIONS)
