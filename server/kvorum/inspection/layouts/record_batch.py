"""Record batches, message format 2, the records in them, and what control records hold."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from construct import (
    Array,
    Bytes,
    Container,
    If,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Peek,
    Struct,
    this,
)

from kvorum.inspection.layouts.fields import (
    COMPACT_STRING,
    HERE,
    TAGGED_FIELDS,
    UUID,
    VARINT,
    VARLONG,
    Layout,
    compact_array,
    named,
    problem_of_end,
    rule,
    sized_bytes,
)
from kvorum.wire.checksums import crc32c

MAGIC: Final = 2
HEADER_BYTES: Final = 61
OVERHEAD_BYTES: Final = 12
"""The bytes of a batch besides those that its length counts: offset and length."""
_LENGTH_MIN: Final = HEADER_BYTES - OVERHEAD_BYTES
# Format, checksum and what lies before them are not covered by the checksum.
_BEFORE_CRC: Final = 9
_OFFSET_MAX: Final = 2**63 - 2**31

COMPRESSION_BITS: Final = 0x07
CONTROL_BIT: Final = 0x20
CONTROL_KEY: Final = named(version=Int16sb, type=Int16sb)
"""The key of every control record. 0 and 1 end a transaction, the others are the quorum's."""

END_TRANSACTION_MARKER: Final = named(version=Int16sb, coordinator_epoch=Int32sb)

_VOTER_ID: Final = named(
    voter_id=Int32sb,
    voter_directory_id=If(this._root.version >= 1, UUID),
    tagged_fields=TAGGED_FIELDS,
)
LEADER_CHANGE: Final = named(
    version=Int16sb,
    leader_id=Int32sb,
    voters=compact_array(_VOTER_ID),
    granting_voters=compact_array(_VOTER_ID),
    tagged_fields=TAGGED_FIELDS,
)
"""The first batch of each leader's epoch: who leads, who the voters are, who voted for it."""

SNAPSHOT_HEADER: Final = named(
    version=Int16sb, last_contained_log_timestamp=Int64sb, tagged_fields=TAGGED_FIELDS
)
SNAPSHOT_FOOTER: Final = named(version=Int16sb, tagged_fields=TAGGED_FIELDS)
KRAFT_VERSION: Final = named(version=Int16sb, kraft_version=Int16sb, tagged_fields=TAGGED_FIELDS)

_ENDPOINT: Final = named(
    name=COMPACT_STRING, host=COMPACT_STRING, port=Int16ub, tagged_fields=TAGGED_FIELDS
)
_SUPPORTED_VERSIONS: Final = named(
    min_supported_version=Int16sb, max_supported_version=Int16sb, tagged_fields=TAGGED_FIELDS
)
_VOTER: Final = named(
    voter_id=Int32sb,
    voter_directory_id=UUID,
    endpoints=compact_array(_ENDPOINT),
    kraft_version_feature=_SUPPORTED_VERSIONS,
    tagged_fields=TAGGED_FIELDS,
)
KRAFT_VOTERS: Final = named(
    version=Int16sb, voters=compact_array(_VOTER), tagged_fields=TAGGED_FIELDS
)

ABORT: Final = 0
COMMIT: Final = 1
CONTROL_VALUES: Final[Mapping[int, Layout]] = MappingProxyType(
    {
        ABORT: END_TRANSACTION_MARKER,
        COMMIT: END_TRANSACTION_MARKER,
        2: LEADER_CHANGE,
        3: SNAPSHOT_HEADER,
        4: SNAPSHOT_FOOTER,
        5: KRAFT_VERSION,
        6: KRAFT_VOTERS,
    }
)
"""The layout of a control record's value, by the type in its key."""


def _problem_of_place(batch: Container[Any]) -> str | None:
    if batch.length < _LENGTH_MIN:
        return f"a length of {batch.length} bytes is less than a header takes"
    if not 0 <= batch.base_offset <= _OFFSET_MAX:
        return f"a base offset of {batch.base_offset}"
    return None


def _problem_of_magic(batch: Container[Any]) -> str | None:
    return None if batch.magic == MAGIC else f"format {batch.magic} instead of {MAGIC}"


def _problem_of_checksum(batch: Container[Any]) -> str | None:
    if batch._covered is None:
        return "cut off by the end of the file"
    computed = crc32c(batch._covered)
    return None if computed == batch.crc else f"the checksum is {computed}, stored is {batch.crc}"


def _problem_of_counts(batch: Container[Any]) -> str | None:
    if batch.last_offset_delta < 0:
        return f"a last offset delta of {batch.last_offset_delta}"
    return f"{batch.records_count} records" if batch.records_count < 0 else None


RECORD_BATCH: Final = named(
    base_offset=Int64sb,
    length=Int32sb,
    _place=rule(_problem_of_place),
    partition_leader_epoch=Int32sb,
    magic=Int8sb,
    _magic=rule(_problem_of_magic),
    crc=Int32ub,
    _covered=Peek(Bytes(this.length - _BEFORE_CRC)),
    _checksum=rule(_problem_of_checksum),
    attributes=Int16ub,
    last_offset_delta=Int32sb,
    base_timestamp=Int64sb,
    max_timestamp=Int64sb,
    producer_id=Int64sb,
    producer_epoch=Int16sb,
    base_sequence=Int32sb,
    records_count=Int32sb,
    _counts=rule(_problem_of_counts),
    records=Bytes(this.length - _LENGTH_MIN),
)
"""A batch. Its checksum does not cover what a leader or a follower may write: offset and epoch.

Attributes: bits 0 to 2 compression, 3 log append time, 4 transactional, 5 control, 6 delete
horizon. `records` are bytes here: `RECORDS` reads them when they are unpacked.
"""


HEADER: Final = named(key=sized_bytes(VARINT, may_be_null=False), value=sized_bytes(VARINT))

RECORD: Final = named(
    length=VARINT,
    _body=HERE,
    attributes=Int8sb,
    timestamp_delta=VARLONG,
    offset_delta=VARINT,
    key=sized_bytes(VARINT),
    value=sized_bytes(VARINT),
    headers_count=VARINT,
    _headers_count=rule(
        lambda record: f"{record.headers_count} headers" if record.headers_count < 0 else None
    ),
    headers=Array(this.headers_count, HEADER),
    _end=HERE,
    _length=rule(problem_of_end),
)
"""A record; its attributes have no meaning yet. Timestamp and offset count from the batch's."""


def records(count: int) -> Struct:
    """Return the layout of the unpacked records of a batch that holds `count` of them."""
    return named(records=Array(count, RECORD))
