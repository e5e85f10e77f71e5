"""Keys, values and control records as JSON, by the topic they are of."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopic,
)
from kvorum.internal_topics.errors import InternalTopicError
from kvorum.internal_topics.remote_log_metadata import decode_remote_log_record
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.record_types import record_type_name
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.records import Record, decode_control_record

Contents: TypeAlias = Callable[[bytes | None, bytes | None], dict[str, Json]]
"""Returns what stands for a record's key and value."""

_REMOTE_LOG_METADATA: Final = "__remote_log_metadata"
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BINARY: Final = "\0"


def contents_of(topic: str | None) -> Contents:
    """Return the decoder of a topic's records; a user's topic has text or bytes."""
    if topic == CLUSTER_METADATA_TOPIC:
        return _metadata
    if topic == _REMOTE_LOG_METADATA:
        return _remote_log_metadata
    coordinator = _COORDINATORS.get(topic or "")
    return _plain if coordinator is None else _coordinator(coordinator)


def control_contents(record: Record) -> dict[str, Json]:
    """Return a control record's type and message."""
    try:
        control = decode_control_record(record)
    except WireError as error:
        return _unreadable(record.key, record.value, error)
    return {
        "controlType": control.type.name,
        "version": control.version,
        "data": to_json(control.message, control.version),
    }


def bytes_json(data: bytes | None) -> Json:
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
    return {"key": bytes_json(key), "value": bytes_json(value)}


def _unreadable(key: bytes | None, value: bytes | None, error: Exception) -> dict[str, Json]:
    return {**_plain(key, value), "problem": str(error)}


def _metadata(key: bytes | None, value: bytes | None) -> dict[str, Json]:
    try:
        message, version = decode_record(value or b"")
    except (WireError, MetadataError) as error:
        return _unreadable(key, value, error)
    name = record_type_name(type(message))
    return {"recordType": name, "version": version, "data": to_json(message, version)}


def _remote_log_metadata(key: bytes | None, value: bytes | None) -> dict[str, Json]:
    try:
        found = decode_remote_log_record(value or b"")
    except (WireError, InternalTopicError) as error:
        return _unreadable(key, value, error)
    return {"recordType": found.type, "version": found.version, "data": found.fields}


def _coordinator(topic: CoordinatorTopic) -> Contents:
    def contents(key: bytes | None, value: bytes | None) -> dict[str, Json]:
        try:
            known = topic.decode_key(key or b"")
            found = None if value is None else topic.decode_value(known.type_id, value)
        except (WireError, InternalTopicError) as error:
            return _unreadable(key, value, error)
        return {
            "recordType": known.type,
            "key": known.fields,
            "value": None if found is None else found.fields,
            "version": None if found is None else found.version,
        }

    return contents


_COORDINATORS: Final[Mapping[str, CoordinatorTopic]] = MappingProxyType(
    {topic.name: topic for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)}
)
