"""Types of columns: each has the Python type of a row's field and the width of the stored column.

The annotations of the row types consist of these, so that a table's schema is read from its row
type, and neither is written twice.
"""

from enum import Enum, unique
from typing import Annotated, NamedTuple, TypeAlias


@unique
class ColumnType(Enum):
    """Stored types that a Python type alone does not determine."""

    INT32 = "int32"
    INT64 = "int64"
    TIMESTAMP_MS = "timestamp_ms"


Int32: TypeAlias = Annotated[int, ColumnType.INT32]
Int64: TypeAlias = Annotated[int, ColumnType.INT64]
TimestampMs: TypeAlias = Annotated[int, ColumnType.TIMESTAMP_MS]
"""Milliseconds since 1970 in UTC; a timestamp in the stored table."""


class EndpointColumn(NamedTuple):
    """The address of a listener; `security_protocol` is Kafka's number."""

    listener: str
    host: str
    port: Int32
    security_protocol: Int32


class FeatureRangeColumn(NamedTuple):
    """The levels of a feature that a node supports, both ends included."""

    name: str
    min_level: Int32
    max_level: Int32


class QuotaEntityColumn(NamedTuple):
    """One part of a quota's entity: `user`, `client-id` or `ip`; no name is the type's default."""

    entity_type: str
    entity_name: str | None


class VoterEndpointColumn(NamedTuple):
    """The address of a voter's listener."""

    listener: str
    host: str
    port: Int32


class VoterColumn(NamedTuple):
    """A voter of the quorum, as a VotersRecord lists it."""

    voter_id: Int32
    directory_id: str
    endpoints: tuple[VoterEndpointColumn, ...]
    min_kraft_version: Int32
    max_kraft_version: Int32
