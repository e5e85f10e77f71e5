"""Control records: the keys and values of a control batch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from construct import If, Int16sb, Int16ub, Int32sb, Int64sb, this

from kvorum.inspection.layouts.fields import (
    COMPACT_STRING,
    TAGGED_FIELDS,
    UUID,
    Layout,
    compact_array,
    named,
)

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
