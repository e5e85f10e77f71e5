"""Types of records: their names, numbers, and fields with own columns; messages as structs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from kvorum.metadata.record_frame import record_type, record_type_name
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.json_form import FieldFacts, element_class, fields_of, is_default
from kvorum.wire.primitives import Message, Struct
from kvorum.wire.records import ControlRecordType
from kvorum.wire.records.control import message_class
from kvorum.wire.uuid_text import uuid_to_text

METADATA: Final = "metadata"
CONTROL: Final = "control"

NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {number: record_type_name(record_type(number)) for number in METADATA_RECORDS}
)
"""The name in Kafka's dumps of every type of metadata record, by its number."""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, name in NAMES.items()}
)

CONTROL_NAMES: Final = frozenset(kind.name for kind in ControlRecordType)

# Record type -> column -> field in Kafka's JSON form. Types without such fields are left out.
SUBJECT_FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "REGISTER_BROKER_RECORD": {"broker_id": "brokerId"},
        "UNREGISTER_BROKER_RECORD": {"broker_id": "brokerId"},
        "TOPIC_RECORD": {"topic_name": "name", "topic_id": "topicId"},
        "PARTITION_RECORD": {
            "topic_id": "topicId",
            "partition_id": "partitionId",
            "leader": "leader",
            "isr": "isr",
            "replicas": "replicas",
            "leader_epoch": "leaderEpoch",
            "partition_epoch": "partitionEpoch",
        },
        "CONFIG_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "name",
        },
        "PARTITION_CHANGE_RECORD": {
            "topic_id": "topicId",
            "partition_id": "partitionId",
            "leader": "leader",
            "isr": "isr",
            "replicas": "replicas",
        },
        "FENCE_BROKER_RECORD": {"broker_id": "id"},
        "UNFENCE_BROKER_RECORD": {"broker_id": "id"},
        "REMOVE_TOPIC_RECORD": {"topic_id": "topicId"},
        "DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "FEATURE_LEVEL_RECORD": {"name": "name"},
        "CLIENT_QUOTA_RECORD": {"name": "key"},
        "PRODUCER_IDS_RECORD": {"broker_id": "brokerId"},
        "BROKER_REGISTRATION_CHANGE_RECORD": {"broker_id": "brokerId"},
        "ACCESS_CONTROL_ENTRY_RECORD": {
            "resource_type": "resourceType",
            "resource_name": "resourceName",
            "name": "id",
        },
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": {"name": "id"},
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": {"name": "name"},
        "BEGIN_TRANSACTION_RECORD": {"name": "name"},
        "REMOVE_DELEGATION_TOKEN_RECORD": {"name": "tokenId"},
        "REGISTER_CONTROLLER_RECORD": {"broker_id": "controllerId"},
        "CLEAR_ELR_RECORD": {"topic_name": "topicName"},
        "LEADER_CHANGE": {"broker_id": "leaderId"},
    }
)

_LIST: Final = "[]"
_UUID: Final = "uuid"
_BYTES: Final = frozenset({"bytes", "records"})
_TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "bool": pa.bool_(),
        "int8": pa.int8(),
        "int16": pa.int16(),
        "uint16": pa.int32(),
        "int32": pa.int32(),
        "uint32": pa.int64(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "string": pa.string(),
        "uuid": pa.string(),
        "bytes": pa.binary(),
        "records": pa.binary(),
    }
)


def message_classes() -> dict[str, type[Message]]:
    """Return the class of the messages of every type of record, by its name in the table."""
    metadata = {name: record_type(number) for number, name in NAMES.items()}
    return metadata | {kind.name: message_class(kind) for kind in ControlRecordType}


def struct_type(kind: type[Struct]) -> pa.DataType:
    """Return the Arrow type of a class of messages.

    A struct has a field for each field of the message in any version, by its name in lower case
    with underscores. A field that is null, that the record's version does not have, or that is a
    tagged field at its default, is null, as it is null or left out in Kafka's JSON form. Uuids are
    text.
    """
    fields: list[Any] = [
        pa.field(field.attribute, _field_type(kind, field.kind)) for field in fields_of(kind)
    ]
    return pa.struct(fields)


def _field_type(kind: type[Struct], name: str) -> Any:
    if name.startswith(_LIST):
        return pa.list_(_field_type(kind, name.removeprefix(_LIST)))
    known = _TYPES.get(name)
    if known is not None:
        return known
    inner = element_class(kind, name)
    if inner is None:
        raise TypeError(f"{kind.__name__} has a field of the unknown type {name}")
    return struct_type(inner)


def struct_value(value: Struct, version: int) -> dict[str, Any]:
    """Return a message as Arrow takes it for a value of its struct."""
    kind = type(value)
    return {
        field.attribute: _field_value(kind, field, getattr(value, field.attribute), version)
        for field in fields_of(kind)
        if field.is_in(version)
    }


def _field_value(kind: type[Struct], field: FieldFacts, value: Any, version: int) -> Any:
    if field.is_tagged_in(version) and is_default(kind, field, value):
        return None
    return _plain(field.kind, value, version)


def _plain(kind: str, value: Any, version: int) -> Any:
    if value is None:
        return None
    if kind.startswith(_LIST):
        return [_plain(kind.removeprefix(_LIST), element, version) for element in value]
    if kind == _UUID:
        return uuid_to_text(value)
    if kind in _BYTES:
        return bytes(value)
    return struct_value(value, version) if isinstance(value, Struct) else value
