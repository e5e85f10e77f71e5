"""A record of a coordinator's partition, and its bytes (CoordinatorRecord, CoordinatorRecordSerde).

A key is the number of the record's type (int16) and a message; a value is the version of its
message (int16) and the message. A null value is a tombstone.
"""

import struct
from dataclasses import dataclass
from typing import Final, TypeVar

from kvorum.wire.errors import WireError
from kvorum.wire.primitives import Message

KEY_VERSION: Final = 0
"""Keys have no other version: equal keys must have equal bytes, or compaction would keep both."""
_MessageT = TypeVar("_MessageT", bound=Message)
_NUMBER: Final = struct.Struct(">h")


class DamagedRecordError(Exception):
    """A key or value that cannot be read, so that a shard cannot be loaded."""


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A key, and a value with its version; a value of None makes it a tombstone.

    The key is a message that has the number of a record's type as `API_KEY`.
    """

    key: Message
    value: Message | None = None
    version: int = 0

    def key_bytes(self) -> bytes:
        """Return the key as it stands in the log."""
        return _NUMBER.pack(self.key.API_KEY) + self.key.encode(KEY_VERSION)

    def value_bytes(self) -> bytes | None:
        """Return the value as it stands in the log; None for a tombstone."""
        if self.value is None:
            return None
        return _NUMBER.pack(self.version) + self.value.encode(self.version)


def record_type(key: bytes) -> int:
    """Return the number of a record's type; raises `DamagedRecordError` for a key too short."""
    return _number(key, "key")


def value_version(value: bytes) -> int:
    """Return the version of a value; raises `DamagedRecordError` for a value too short."""
    return _number(value, "value")


def decoded(kind: type[_MessageT], data: bytes, version: int) -> _MessageT:
    """Return the message of a key or a value, behind its number.

    Raises `DamagedRecordError` for bytes that cannot be read and for an unknown version.
    """
    try:
        message, _ = kind.decode_from(data, _NUMBER.size, version)
    except WireError as error:
        raise DamagedRecordError(str(error)) from error
    return message


def _number(data: bytes, what: str) -> int:
    if len(data) < _NUMBER.size:
        raise DamagedRecordError(f"{what}: {len(data)} bytes are too few for its number")
    return int(_NUMBER.unpack_from(data)[0])
