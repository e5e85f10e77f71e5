"""Messages of the formats 0 and 1, which Kafka wrote before version 0.11."""

import zlib
from typing import Any, Final

from construct import Bytes, Container, If, Int8ub, Int32sb, Int32ub, Int64sb, Peek, this

from kvorum.inspection.layouts.record_batch import HERE, named, problem_of_end, rule, sized_bytes

MAGIC_PLACE: Final = 16
OVERHEAD_BYTES: Final = 12
# Checksum, format, attributes, and the lengths of key and value.
_LENGTH_MIN: Final = 14
_TIMESTAMP_BYTES: Final = 8
_CRC_BYTES: Final = 4


def _problem_of_place(message: Container[Any]) -> str | None:
    if message.length < _LENGTH_MIN:
        return f"a length of {message.length} bytes is less than a message takes"
    return f"an offset of {message.offset}" if message.offset < 0 else None


def _problem_of_checksum(message: Container[Any]) -> str | None:
    if message._covered is None:
        return "cut off by the end of the file"
    computed = zlib.crc32(message._covered)
    if computed != message.crc:
        return f"the checksum is {computed}, stored is {message.crc}"
    return None


def _problem_of_magic(message: Container[Any]) -> str | None:
    if message.magic > 1:
        return f"format {message.magic} where 0 or 1 belongs"
    if message.magic == 1 and message.length < _LENGTH_MIN + _TIMESTAMP_BYTES:
        return f"a length of {message.length} bytes is less than a message with a timestamp takes"
    return None


LEGACY_MESSAGE: Final = named(
    offset=Int64sb,
    length=Int32sb,
    _body=HERE,
    _place=rule(_problem_of_place),
    crc=Int32ub,
    _covered=Peek(Bytes(this.length - _CRC_BYTES)),
    _checksum=rule(_problem_of_checksum),
    magic=Int8ub,
    _magic=rule(_problem_of_magic),
    attributes=Int8ub,
    timestamp=If(this.magic == 1, Int64sb),
    key=sized_bytes(Int32sb),
    value=sized_bytes(Int32sb),
    _end=HERE,
    _length=rule(problem_of_end),
)
"""A message. Attributes: bits 0 to 2 compression, bit 3 log append time (format 1).

A compressed message wraps others: its value holds messages of the same layout, and its offset is
that of the last one. In format 1 the wrapped ones count their offsets from 0.
"""
