"""The columns of a run of messages of the formats 0 and 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from kvorum.spark.columnar.arrow_values import Array
from kvorum.spark.columnar.record_places import RecordPlaces
from kvorum.spark.files.log_file import LogFile
from kvorum.spark.log_source.columns import ARROW_TYPES
from kvorum.spark.log_source.record_columns import RecordColumns, timestamp_type
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.records.legacy import LegacyMessage

ALWAYS_NULL: Final = frozenset(
    {
        *("leader_epoch", "producer_id", "producer_epoch", "sequence"),
        *("transaction", "control_type"),
    }
)
"""The columns of what these formats are older than."""


def message_timestamp_type(message: LegacyMessage) -> str | None:
    """Return the kind of a message's times; None in format 0, which has none."""
    return timestamp_type(message) if message.magic else None


MESSAGE_VALUES: Final[Mapping[str, Callable[[LegacyMessage], str | None]]] = MappingProxyType(
    {
        "timestamp_type": message_timestamp_type,
        "compression": lambda message: message.compression.name.lower(),
    }
)
"""The columns that are the same for all records that a message wraps."""


class MessageColumns(RecordColumns):
    """Columns by name, each made when it is asked for."""

    def __init__(
        self,
        file: LogFile,
        messages: Sequence[LegacyMessage],
        places: RecordPlaces,
        outcomes: TransactionOutcomes,
    ) -> None:
        super().__init__(file, (), places, outcomes)
        self._messages = messages

    def column(self, name: str) -> Array:
        """Return one value for each record."""
        kind = ARROW_TYPES[name]
        if name in ALWAYS_NULL:
            arrow: Any = pa
            nulls: Array = arrow.nulls(len(self._places.offsets), kind)
            return nulls
        if name in MESSAGE_VALUES:
            return self._each([MESSAGE_VALUES[name](message) for message in self._messages], kind)
        return super().column(name)
