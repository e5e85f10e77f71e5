"""Control records of a log (ControlRecordUtils in Kafka).

The key is a version (0) and a type, the value a message: the leader, the voters, the begin and end
of a snapshot, or the end of a producer's transaction.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records.record import Record, RecordData

# Kafka writes and reads the quorum's control records in this version of each schema.
CONTROL_VERSION: Final = 0
_KEY = struct.Struct(">hh")
_VERSION = struct.Struct(">h")
_WHAT = "control record"


class ControlRecordType(IntEnum):
    """The types, by the number in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


# Unlike the others' values, theirs begin with the version of the message.
TRANSACTION_ENDS: Final = frozenset({ControlRecordType.ABORT, ControlRecordType.COMMIT})


class ControlRecord(NamedTuple):
    """A type, its message, and the version that the message is in."""

    type: ControlRecordType
    message: Message
    version: int = CONTROL_VERSION


def message_class(control_type: ControlRecordType) -> type[Message]:
    """Return the class of the message that a type carries."""
    match control_type:
        case ControlRecordType.ABORT | ControlRecordType.COMMIT:
            return EndTxnMarker
        case ControlRecordType.LEADER_CHANGE:
            return LeaderChangeMessage
        case ControlRecordType.SNAPSHOT_HEADER:
            return SnapshotHeaderRecord
        case ControlRecordType.SNAPSHOT_FOOTER:
            return SnapshotFooterRecord
        case ControlRecordType.KRAFT_VERSION:
            return KRaftVersionRecord
        case ControlRecordType.KRAFT_VOTERS:
            return VotersRecord


def decode_control_record(record: Record) -> ControlRecord:
    """Return the type and the message of a record in a control batch.

    Raises `CorruptBatchError` for a type that does not exist, and for a key or value that is
    missing or too short.
    """
    key, value = record.key, record.value
    if key is None or len(key) < _KEY.size:
        raise CorruptBatchError(_WHAT, f"no type at offset {record.offset}")
    _, number = _KEY.unpack_from(key)
    if number not in ControlRecordType.__members__.values():
        raise CorruptBatchError(_WHAT, f"unknown type {number} at offset {record.offset}")
    if not value:
        raise CorruptBatchError(_WHAT, f"no value at offset {record.offset}")
    control_type = ControlRecordType(number)
    if control_type in TRANSACTION_ENDS:
        return _transaction_end(control_type, value)
    return ControlRecord(control_type, message_class(control_type).decode(value, CONTROL_VERSION))


def _transaction_end(control_type: ControlRecordType, value: bytes) -> ControlRecord:
    if len(value) < _VERSION.size:
        raise CorruptBatchError(_WHAT, f"a value of {len(value)} byte")
    (version,) = _VERSION.unpack_from(value)
    # A marker from a newer coordinator begins as the newest that is known.
    known = min(version, EndTxnMarker.MAX_VERSION)
    if known < 0:
        raise CorruptBatchError(_WHAT, f"version {version} of a transaction's end")
    marker, _ = EndTxnMarker.decode_from(value, _VERSION.size, known)
    return ControlRecord(control_type, marker, known)


def encode_control_record(control: ControlRecord, timestamp_ms: int) -> RecordData:
    """Return a control record for a control batch."""
    return RecordData(
        key=_KEY.pack(CONTROL_VERSION, control.type), value=_value(control), timestamp=timestamp_ms
    )


def _value(control: ControlRecord) -> bytes:
    encoded = control.message.encode(control.version)
    return _VERSION.pack(control.version) + encoded if control.type in TRANSACTION_ENDS else encoded
