"""The formatting of a node's directories, for ``kvorum storage format`` and embedded clusters.

`format_directories` takes a `FormatRequest`. Refusals are `FormatError` with Kafka's message.
"""

from kvorum.node.errors import FormatError
from kvorum.node.format.directories import DirectoryType, FormatRequest, format_directories
from kvorum.node.format.dynamic_voters import (
    DynamicVoter,
    parse_dynamic_voter,
    parse_dynamic_voters,
    standalone_voters,
    voters_by_id,
)

__all__ = [
    "DirectoryType",
    "DynamicVoter",
    "FormatError",
    "FormatRequest",
    "format_directories",
    "parse_dynamic_voter",
    "parse_dynamic_voters",
    "standalone_voters",
    "voters_by_id",
]
