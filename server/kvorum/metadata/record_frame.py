"""The frame around each metadata record: frame version, record type, record version, body."""

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from kvorum.metadata.errors import MetadataParseError
from kvorum.wire.apis import METADATA_RECORDS, record_class
from kvorum.wire.errors import WireError
from kvorum.wire.primitives import Message
from kvorum.wire.records.record import encode_unsigned_varint

_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")

RecordAndVersion: TypeAlias = tuple[Message, int]
"""A record as the controller produces it: the message and the version to write it in."""
FRAME_VERSION = 1
SHORT_HEADER_BYTES = 3
INT16_MAX = 0x7FFF
# Three groups of seven bits hold every int16; Kafka's readers accept up to five groups.
UNSIGNED_VARINT_BYTES_MAX = 5


def record_type(key: int) -> type[Message]:
    """Return the class of the metadata records of type `key`.

    Raises `MetadataParseError` for an unknown type: a newer release wrote the log, and its records
    must not be guessed at.
    """
    if key not in METADATA_RECORDS:
        raise MetadataParseError(f"unknown metadata record type {key}")
    return record_class(key)


def record_type_name(kind: type[Message]) -> str:
    """Return the name that Kafka's tools give a record type: TOPIC_RECORD for TopicRecord."""
    return _WORD_START.sub("_", kind.NAME).upper()


def encode_record(message: Message, version: int) -> bytes:
    """Return the value of a log record that holds `message` written in `version`."""
    key = message.API_KEY
    if key is None:
        raise TypeError(f"{message.NAME} is not a metadata record")
    return (
        bytes((FRAME_VERSION,))
        + encode_unsigned_varint(key)
        + encode_unsigned_varint(version)
        + message.encode(version)
    )


def decode_record(
    value: bytes | memoryview, type_of: Callable[[int], type[Message]] = record_type
) -> tuple[Message, int]:
    """Return the message in the value of a log record, and the version it was written in.

    `type_of` returns the class of a record type, or raises an error for an unknown one: other
    topics have the same frame around types of their own.

    Raises `MetadataParseError` for another frame version, an unknown record type or version, a
    truncated body or trailing bytes.
    """
    key, version, offset = _decode_header(value)
    message_class = type_of(key)
    if not message_class.MIN_VERSION <= version <= message_class.MAX_VERSION:
        raise MetadataParseError(
            f"{message_class.NAME} has no version {version} "
            f"(known are {message_class.MIN_VERSION} to {message_class.MAX_VERSION})"
        )
    try:
        return message_class.decode(value[offset:], version), version
    except WireError as error:
        raise MetadataParseError(
            f"record of type {key} ({message_class.NAME} v{version}): {error}"
        ) from error


def _decode_header(value: bytes | memoryview) -> tuple[int, int, int]:
    """Return type, version and the offset after them."""
    if len(value) > SHORT_HEADER_BYTES and value[0] == FRAME_VERSION:
        # Nearly every record has numbers of one byte each.
        key, version = value[1], value[2]
        if (key | version) < 0x80:
            return key, version, SHORT_HEADER_BYTES
    frame_version, offset = decode_header_number(value, 0, "frame version")
    if frame_version != FRAME_VERSION:
        raise MetadataParseError(
            f"unknown frame version {frame_version} (only frame version {FRAME_VERSION} is known)"
        )
    key, offset = decode_header_number(value, offset, "type")
    version, offset = decode_header_number(value, offset, "version")
    return key, version, offset


def decode_header_number(value: bytes | memoryview, offset: int, what: str) -> tuple[int, int]:
    """Return one number of the frame's header and the offset after it."""
    number = 0
    for index in range(UNSIGNED_VARINT_BYTES_MAX):
        if offset + index >= len(value):
            raise MetadataParseError(f"record ends inside its {what}")
        byte = value[offset + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if number > INT16_MAX:
                raise MetadataParseError(f"value for {what} was too large: {number}")
            return number, offset + index + 1
    raise MetadataParseError(f"unterminated number where the {what} belongs")
