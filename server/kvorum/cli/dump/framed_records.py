"""Framed records (metadata, remote log metadata) read as kafka-dump-log reads them.

It reads what a later release wrote as far as its own release knows it, and what it says of a record
that it cannot read is part of the output. `kvorum.metadata.record_frame`, which nodes read with,
refuses both.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from kvorum.wire.errors import WireError
from kvorum.wire.primitives import Message

_NUMBER_BYTES_MAX: Final = 5
_INT16_MAX: Final = 2**15 - 1
_UNKNOWN: Final = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id"


class UnreadableRecordError(ValueError):
    """A value that is not a framed record; the text is Kafka's."""


class FramedRecord(NamedTuple):
    """A record with its version, and with the newest version known up to that one: its layout."""

    message: Message
    version: int
    layout: int


def read_framed(value: bytes, class_of: Callable[[int], type[Message] | None]) -> FramedRecord:
    """Return the record in a value; `class_of` returns the class of a record type, None without.

    Raises `UnreadableRecordError`.
    """
    frame, position = _number(value, 0, "frame version")
    if frame == 0:
        raise UnreadableRecordError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != 1:
        raise UnreadableRecordError(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            "(only frame version 1 is supported)"
        )
    type_id, position = _number(value, position, "type")
    version, position = _number(value, position, "version")
    kind = class_of(type_id)
    if kind is None:
        raise UnreadableRecordError(f"{_UNKNOWN} {type_id}")
    layout = min(version, kind.MAX_VERSION)
    try:
        message, end = kind.decode_from(value, position, layout)
    except WireError:
        problem = f"Failed to deserialize record with type {type_id}"
        raise UnreadableRecordError(problem) from None
    if end < len(value):
        rest = len(value) - end
        raise UnreadableRecordError(f"Found {rest} byte(s) of garbage after {type_id}")
    return FramedRecord(message, version, layout)


def _number(value: bytes, position: int, what: str) -> tuple[int, int]:
    """Return a number of the frame, as Java's 32 and then 16 bits hold it, and where it ends."""
    number = 0
    for index, byte in enumerate(value[position : position + _NUMBER_BYTES_MAX]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            number = _signed(number, 32)
            if number > _INT16_MAX:
                raise UnreadableRecordError(f"Value for {what} was too large.")
            return _signed(number, 16), position + index + 1
    raise UnreadableRecordError(f"Error while reading {what}")


def _signed(number: int, bits: int) -> int:
    """Return the number that the lowest bits are as a signed one."""
    limit = 1 << (bits - 1)
    return (number + limit) % (2 * limit) - limit
