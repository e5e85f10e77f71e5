"""Indexes, producer snapshots, checkpoints and the other small files as JSON objects."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.inspection.reading import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    OffsetEntry,
    TimeEntry,
    lasting_name,
    offset_entries,
    time_entries,
    used_bytes,
)
from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT, decode_leader_epochs
from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.storage.log.transaction_index import TransactionIndex
from kvorum.storage.metadata_log.flushed_offset import FLUSHED_OFFSET_FILE, decode_flushed_offset
from kvorum.storage.names import (
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_offset_name,
)
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE, decode_meta_properties
from kvorum.storage.small_files.offset_checkpoint_file import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    decode_offsets,
)
from kvorum.storage.small_files.partition_metadata import (
    PARTITION_METADATA,
    decode_partition_metadata,
)
from kvorum.storage.small_files.quorum_state import (
    QUORUM_STATE_FILE,
    decode_quorum_state,
    first_line,
)
from kvorum.wire.json_form import Json
from kvorum.wire.uuid_text import uuid_to_text

Objects: TypeAlias = Iterator[dict[str, Json]]
Reader: TypeAlias = Callable[[Path], Objects]
"""Yields the objects of a file; raises OSError, `StorageError` and ValueError."""

_FILES: Final = RealFileSystem()
_NO_ADVICE: Final = ""


def reader_of(name: str) -> Reader | None:
    """Return the reader of a small file by its name; None for any other name."""
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    parsed = parse_offset_name(name)
    return None if parsed is None else _BY_SUFFIX.get(parsed[1])


def _base_offset(path: Path) -> int:
    parsed = parse_offset_name(lasting_name(path.name))
    assert parsed is not None
    return parsed[0]


def _index(
    kind: str,
    entries_of: Callable[[bytes, int], list[OffsetEntry] | list[TimeEntry]],
    entry_size: int,
    path: Path,
) -> Objects:
    """Yield the entries, without the zeros behind them that a node sets aside in its last index."""
    data = path.read_bytes()
    entries = data[: used_bytes(data, entry_size)]
    for entry in entries_of(entries, _base_offset(path)):
        yield {"type": kind, **entry._asdict()}
    if len(data) % entry_size:
        raise CorruptFileError(
            f"{len(data)} bytes are no whole number of entries", file=path, advice=_NO_ADVICE
        )


def _transaction_index(path: Path) -> Objects:
    for entry in TransactionIndex(path, _base_offset(path), files=_FILES).entries:
        yield {
            "type": "abortedTransaction",
            "producerId": entry.producer_id,
            "firstOffset": entry.first_offset,
            "lastOffset": entry.last_offset,
            "lastStableOffset": entry.last_stable_offset,
        }


def _producer_snapshot(path: Path) -> Objects:
    for producer_id, entry in decode_producer_snapshot(path.read_bytes(), path).items():
        last = entry.batches[-1] if entry.batches else None
        yield {
            "type": "producer",
            "producerId": producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.transaction_start,
            "lastTimestamp": entry.last_timestamp,
            "lastSequence": None if last is None else last.last_sequence,
            "lastOffset": None if last is None else last.last_offset,
            "offsetDelta": None if last is None else last.offset_delta,
        }


def _leader_epochs(path: Path) -> Objects:
    for entry in decode_leader_epochs(path.read_bytes(), path):
        yield {"type": "leaderEpoch", "epoch": entry.epoch, "startOffset": entry.start_offset}


def _offset_checkpoint(path: Path) -> Objects:
    offsets = decode_offsets(path.read_bytes(), path, advice=_NO_ADVICE)
    for (topic, partition), offset in offsets.items():
        yield {"type": "offsetCheckpoint", "topic": topic, "partition": partition, "offset": offset}


def _partition_metadata(path: Path) -> Objects:
    topic_id = decode_partition_metadata(path.read_bytes(), path)
    yield {"type": "partitionMetadata", "topicId": uuid_to_text(topic_id)}


def _quorum_state(path: Path) -> Objects:
    data = path.read_bytes()
    decode_quorum_state(data, path)
    yield {"type": "quorumState", **json.loads(first_line(data))}


def _meta_properties(path: Path) -> Objects:
    data = path.read_bytes()
    decode_meta_properties(data)
    yield {"type": "metaProperties", **load_java_properties(data)}


def _flushed_offset(path: Path) -> Objects:
    yield {"type": "flushedOffset", "offset": decode_flushed_offset(path.read_bytes(), path)}


def _clean_shutdown(path: Path) -> Objects:
    data = path.read_bytes()
    yield {"type": "cleanShutdown", **(json.loads(data) if data else {})}


_BY_NAME: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        LEADER_EPOCH_CHECKPOINT: _leader_epochs,
        RECOVERY_POINT_CHECKPOINT: _offset_checkpoint,
        LOG_START_OFFSET_CHECKPOINT: _offset_checkpoint,
        HIGH_WATERMARK_CHECKPOINT: _offset_checkpoint,
        CLEANER_OFFSET_CHECKPOINT: _offset_checkpoint,
        PARTITION_METADATA: _partition_metadata,
        QUORUM_STATE_FILE: _quorum_state,
        META_PROPERTIES_FILE: _meta_properties,
        FLUSHED_OFFSET_FILE: _flushed_offset,
        CLEAN_SHUTDOWN_FILE: _clean_shutdown,
    }
)
_BY_SUFFIX: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        OFFSET_INDEX_SUFFIX: partial(_index, "offsetIndexEntry", offset_entries, OFFSET_ENTRY.size),
        TIME_INDEX_SUFFIX: partial(_index, "timeIndexEntry", time_entries, TIME_ENTRY.size),
        TRANSACTION_INDEX_SUFFIX: _transaction_index,
        PRODUCER_SNAPSHOT_SUFFIX: _producer_snapshot,
    }
)
