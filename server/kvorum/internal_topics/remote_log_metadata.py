"""Records of ``__remote_log_metadata``: what tiered storage keeps of segments in remote storage.

Such records have no key. Their values have the frame of metadata records (frame version, record
type, record version, body) around messages of their own.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.internal_topics.errors import DamagedRecordError, UnknownRecordTypeError
from kvorum.metadata.errors import MetadataParseError
from kvorum.metadata.record_frame import decode_record, record_type_name
from kvorum.wire.apis import message_class
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.primitives import Message

REMOTE_LOG_RECORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "RemoteLogSegmentMetadataRecord",
        1: "RemoteLogSegmentMetadataUpdateRecord",
        2: "RemotePartitionDeleteMetadataRecord",
        3: "RemoteLogSegmentMetadataSnapshotRecord",
    }
)


class RemoteLogRecord(NamedTuple):
    """A decoded record: type by Kafka's name, version, and the fields in JSON form."""

    type: str
    version: int
    fields: Json


def decode_remote_log_record(value: bytes) -> RemoteLogRecord:
    """Return what is in the value of a record.

    Raises `UnknownRecordTypeError` or `DamagedRecordError`.
    """
    try:
        message, version = decode_record(value, _message_class)
    except MetadataParseError as error:
        raise DamagedRecordError(str(error)) from error
    return RemoteLogRecord(record_type_name(type(message)), version, to_json(message, version))


def _message_class(type_id: int) -> type[Message]:
    if type_id not in REMOTE_LOG_RECORDS:
        raise UnknownRecordTypeError(type_id)
    return message_class(REMOTE_LOG_RECORDS[type_id])
