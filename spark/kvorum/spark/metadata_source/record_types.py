"""Types of records: names and numbers of metadata records, names of control records."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.record_types import record_type, record_type_name
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.primitives import Message
from kvorum.wire.records import ControlRecordType
from kvorum.wire.records.control import message_class

METADATA: Final = "metadata"
CONTROL: Final = "control"

NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {number: record_type_name(record_type(number)) for number in METADATA_RECORDS}
)
"""The name in Kafka's dumps of every type of metadata record, by its number."""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, name in NAMES.items()}
)

CONTROL_NAMES: Final = frozenset(kind.name for kind in ControlRecordType)


def message_classes() -> dict[str, type[Message]]:
    """Return the class of the messages of every type of record, by its name in the table."""
    metadata = {name: record_type(number) for number, name in NAMES.items()}
    return metadata | {kind.name: message_class(kind) for kind in ControlRecordType}
