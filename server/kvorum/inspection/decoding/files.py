"""The objects in a file, or in all files of a directory: batches, and records by their topic."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.inspection.decoding.small_files import reader_of
from kvorum.inspection.log_check.listing import directories_below, read_unit, units_of_file
from kvorum.inspection.reading import Tell, is_in_writing, lasting_name, no_report
from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopic,
)
from kvorum.internal_topics.errors import InternalTopicError
from kvorum.internal_topics.remote_log_metadata import decode_remote_log_record
from kvorum.log_files.damage import Damage
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.record_frame import decode_record, record_type_name
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.storage.directory.partition_directory import current_name
from kvorum.storage.errors import StorageError
from kvorum.storage.names import LOG_SUFFIX, SNAPSHOT_SUFFIX, parse_partition_directory
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.records import Record, RecordBatch, decode_control_record
from kvorum.wire.records.batch import COMPRESSION_MASK
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import Entry, LegacyMessage

Contents: TypeAlias = Callable[[bytes | None, bytes | None], dict[str, Json]]
"""Returns what stands for a record's key and value; raises one of `_CONTENT_ERRORS`."""

_CONTENT_ERRORS: Final = (WireError, MetadataError, InternalTopicError)
_REMOTE_LOG_METADATA: Final = "__remote_log_metadata"
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BINARY: Final = "\0"
LOG_APPEND_TIME = "LogAppendTime"
CREATE_TIME = "CreateTime"
DAMAGE: Final = "damage"
UNFINISHED: Final = "unfinished"
"""The type of what is missing at the end of a file that a node is still writing."""


def _bytes_json(data: bytes | None) -> Json:
    """Return bytes as text where they are text, else as an object with their base64."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = _BINARY
    if _CONTROL_CHARACTER.search(text):
        return {"base64": base64.b64encode(data).decode()}
    return text


def _plain(key: bytes | None, value: bytes | None) -> dict[str, Json]:
    return {"key": _bytes_json(key), "value": _bytes_json(value)}


def _metadata(_: bytes | None, value: bytes | None) -> dict[str, Json]:
    message, version = decode_record(value or b"")
    name = record_type_name(type(message))
    return {"recordType": name, "version": version, "data": to_json(message, version)}


def _remote_log_metadata(_: bytes | None, value: bytes | None) -> dict[str, Json]:
    found = decode_remote_log_record(value or b"")
    return {"recordType": found.type, "version": found.version, "data": found.fields}


def _coordinator(
    topic: CoordinatorTopic, key: bytes | None, value: bytes | None
) -> dict[str, Json]:
    known = topic.decode_key(key or b"")
    found = None if value is None else topic.decode_value(known.type_id, value)
    return {
        "recordType": known.type,
        "key": known.fields,
        "value": None if found is None else found.fields,
        "version": None if found is None else found.version,
    }


_CONTENTS: Final[Mapping[str, Contents]] = MappingProxyType(
    {
        CLUSTER_METADATA_TOPIC: _metadata,
        _REMOTE_LOG_METADATA: _remote_log_metadata,
        CONSUMER_OFFSETS.name: partial(_coordinator, CONSUMER_OFFSETS),
        TRANSACTION_STATE.name: partial(_coordinator, TRANSACTION_STATE),
        SHARE_GROUP_STATE.name: partial(_coordinator, SHARE_GROUP_STATE),
    }
)
"""The decoders of records by their topic; all other topics have text or bytes."""


def _control(record: Record) -> dict[str, Json]:
    control = decode_control_record(record)
    return {
        "controlType": control.type.name,
        "version": control.version,
        "data": to_json(control.message, control.version),
    }


class UnknownFileError(Exception):
    """A file of none of the kinds that Kafka writes into a log directory; one line of text."""


def _log_objects(path: Path, name: str, topic: str | None, tell: Tell) -> Iterator[dict[str, Json]]:
    """Yield an object for each batch, each of its records, and each damage between batches.

    The file is read as if it had the name `name`. Raises OSError and `UnknownFileError`.
    """
    contents = _CONTENTS.get(topic or "", _plain)
    units = units_of_file(path, name)
    if not units:
        raise UnknownFileError(f"{path}: the name does not begin with an offset in 20 digits")
    for unit in units:
        for item in read_unit(unit, has_gaps=topic != CLUSTER_METADATA_TOPIC):
            tell(path, item.position)
            if isinstance(item, Damage):
                reaches_end = item.last_offset is None
                yield {
                    "type": UNFINISHED if reaches_end and is_in_writing(path.name) else DAMAGE,
                    "position": item.position,
                    "offset": item.first_offset,
                    "problem": item.text,
                }
                continue
            yield _batch_object(item) if isinstance(item, RecordBatch) else _message_object(item)
            yield from _records(item, contents)


def _batch_object(batch: RecordBatch) -> dict[str, Json]:
    return {
        "type": "batch",
        "position": batch.position,
        "size": batch.size,
        "magic": batch.magic,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "compression": batch.attributes & COMPRESSION_MASK,
        "timestampType": LOG_APPEND_TIME if batch.is_log_append_time else CREATE_TIME,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "crc": batch.crc,
    }


def _message_object(message: LegacyMessage) -> dict[str, Json]:
    return {
        "type": "message",
        "position": message.position,
        "size": message.size,
        "magic": message.magic,
        "offset": message.offset,
        "compression": message.attributes & COMPRESSION_MASK,
        "timestamp": message.timestamp if message.magic else None,
        "crc": message.crc,
    }


def _records(entry: Entry, contents: Contents) -> Iterator[dict[str, Json]]:
    """Yield the records of a batch; behind those that can be read, what is wrong with the rest."""
    try:
        for record in entry.records(UNLIMITED_BYTES):
            yield _record_object(record, contents, is_control=entry.is_control)
    except WireError as error:
        yield {
            "type": DAMAGE,
            "position": entry.position,
            "offset": entry.last_offset,
            "problem": f"its records cannot be read: {error}",
        }


def _record_object(
    record: Record | LegacyMessage, contents: Contents, *, is_control: bool
) -> dict[str, Json]:
    found: dict[str, Json] = {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    if isinstance(record, Record) and record.headers:
        found["headers"] = [
            {"key": key, "value": _bytes_json(value)} for key, value in record.headers
        ]
    try:
        if is_control and isinstance(record, Record):
            return found | _control(record)
        return found | contents(record.key, record.value)
    except _CONTENT_ERRORS as error:
        return {**found, **_plain(record.key, record.value), "problem": str(error)}


def files_below(path: Path) -> list[Path]:
    """Return a file itself, or the files of all directories below one that can be decoded.

    A directory that a running node has removed meanwhile is left out. Raises OSError.
    """
    if not path.is_dir():
        return [path]
    return [file for directory in directories_below(path) for file in _known_files(directory)]


def _known_files(directory: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [each for each in sorted(directory.iterdir()) if each.is_file() and _is_known(each)]
    return []


def file_objects(
    path: Path, topic: str | None = None, *, tell: Tell = no_report
) -> Iterator[dict[str, Json]]:
    """Yield what is in a file, an object for each part; what is damaged is an object too.

    The end of a file that a node is still writing may be missing, which is no damage. `topic` says
    which records a segment has; without it the directory's name does. Raises OSError and
    `UnknownFileError`.
    """
    name = lasting_name(path.name)
    if name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)):
        is_snapshot = name.endswith(SNAPSHOT_SUFFIX)
        known = CLUSTER_METADATA_TOPIC if is_snapshot else _topic_of(path.absolute().parent)
        yield from _log_objects(path, name, topic or known, tell)
        return
    reader = reader_of(name)
    if reader is None:
        raise UnknownFileError(f"{path}: no file of a log directory has such a name")
    try:
        yield from reader(path)
    except (StorageError, ValueError) as error:
        problem = error.problem if isinstance(error, StorageError) else str(error)
        kind = UNFINISHED if is_in_writing(path.name) else DAMAGE
        yield {"type": kind, "position": 0, "problem": problem}


def _is_known(file: Path) -> bool:
    name = lasting_name(file.name)
    return name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)) or reader_of(name) is not None


def _topic_of(directory: Path) -> str | None:
    parsed = parse_partition_directory(current_name(directory.name))
    return None if parsed is None else parsed[0]
