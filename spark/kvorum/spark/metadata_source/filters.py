"""Conditions of a query that are used to skip files, ranges, batches and records.

Each method here may return True ("may match") for any reason, and False only with certainty.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np

from kvorum.log_files.ranges import FileRange
from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.columnar.field_places import Flags, Ints
from kvorum.spark.columnar.record_places import have_one_of
from kvorum.spark.conditions import ColumnKinds, Conditions, all_match, offsets_may_match
from kvorum.spark.metadata_source.columns import file_values
from kvorum.spark.metadata_source.record_types import CONTROL, CONTROL_NAMES, METADATA, NUMBERS
from kvorum.wire.uuid_text import uuid_from_text

COLUMN_KINDS: Final = ColumnKinds(
    numbers=frozenset({"offset", "epoch", "partition_id", "broker_id", "node_id"}),
    texts=frozenset(
        {"type", "record_kind", "file_kind", "topic_id", "topic_name", "cluster_id", "path"}
    ),
    times=frozenset({"timestamp"}),
)
BOUND_COLUMNS: Final = frozenset({"offset", "epoch", "timestamp"})
NEEDLE_COLUMNS: Final = ("topic_id", "topic_name")
NEEDLES_MAX: Final = 16
"""Looking for more of them takes as long as reading the records does."""
BODY_COLUMNS: Final = (*NEEDLE_COLUMNS, "partition_id", "broker_id")
# Text that is not UTF-8 is read as this character, so a name with it need not be in the bytes.
REPLACEMENT: Final = "\ufffd"


class RowFilter(NamedTuple):
    """All conditions of a query that can be used, by column."""

    conditions: Conditions

    def admits_range(self, unit: FileRange) -> bool:
        """Return whether a range may hold a row that Spark keeps."""
        facts = file_values(unit.file)
        return all_match(self.conditions, facts) and offsets_may_match(self.conditions, unit)

    @property
    def types(self) -> frozenset[str] | None:
        """The names of the types that are wanted; None for all of them."""
        condition = self.conditions.get("type")
        return None if condition is None else condition.values


NO_FILTER: Final = RowFilter({})


class BatchFilter:
    """The conditions of a query on batches: by their headers, and by their raw bytes.

    Of each list of `needles` one is among the bytes of every metadata record that is wanted.
    """

    def __init__(self, row_filter: RowFilter) -> None:
        self._conditions = row_filter.conditions
        self._admits_metadata = _admits_kind(row_filter, METADATA, NUMBERS)
        self._admits_control = _admits_kind(row_filter, CONTROL, CONTROL_NAMES)
        found = (_needles(column, row_filter.conditions) for column in NEEDLE_COLUMNS)
        self.needles = [needles for needles in found if needles is not None]

    def admitted(self, block: BatchBlock) -> Flags:
        """Return which batches may hold a row that Spark keeps."""
        found = np.where(block.is_control, self._admits_control, self._admits_metadata)
        for column in BOUND_COLUMNS & self._conditions.keys():
            found &= self._conditions[column].may_match_each(*_bounds(block, column))
        for needles in self.needles:
            of_bytes = have_one_of(bytes(block.data), block.starts, block.ends, needles)
            found &= block.is_packed | of_bytes
        return found


def _bounds(block: BatchBlock, column: str) -> tuple[Ints | None, Ints]:
    """Return the lowest and the highest value that a batch's records may have in a column."""
    if column == "offset":
        return block.column("base_offset"), block.last_offsets
    if column == "epoch":
        epochs = block.column("partition_leader_epoch")
        return epochs, epochs
    # The time of the first record need not be the lowest.
    return None, block.column("max_timestamp")


def _admits_kind(row_filter: RowFilter, kind: str, types: Collection[str]) -> bool:
    """Return whether batches of one kind of records may have a wanted kind and type."""
    if not all_match(row_filter.conditions, {"record_kind": kind}):
        return False
    return row_filter.types is None or not row_filter.types.isdisjoint(types)


def _needles(column: str, conditions: Conditions) -> list[bytes] | None:
    """Return bytes of which one is in every record that has a wanted value; None if unknown."""
    condition = conditions.get(column)
    if condition is None or condition.values is None or len(condition.values) > NEEDLES_MAX:
        return None
    if column == "topic_name":
        names = [str(name) for name in condition.values]
        if any(REPLACEMENT in name for name in names):
            return None
        return [name.encode("utf-8", errors="surrogatepass") for name in names]
    return [uuid for text in condition.values if (uuid := _uuid(text)) is not None]


def _uuid(text: Any) -> bytes | None:
    """Return the id that a text stands for; None for a text that no id is written as."""
    try:
        return uuid_from_text(str(text))
    except ValueError:
        return None
