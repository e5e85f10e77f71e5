"""Conditions of a query that are used to skip files, ranges, batches and records.

Each method here may return True ("may match") for any reason, and False only with certainty.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from kvorum.spark.conditions import (
    ColumnKinds,
    Conditions,
    all_match,
    all_may_match,
    offsets_may_match,
)
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.metadata_source.record_types import CONTROL, CONTROL_NAMES, METADATA, NUMBERS
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK
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
BODY_COLUMNS: Final = (*NEEDLE_COLUMNS, "partition_id", "broker_id")
# Text that is not UTF-8 is read as this character, so a name with it need not be in the bytes.
REPLACEMENT: Final = "\ufffd"


class RowFilter(NamedTuple):
    """All conditions of a query that can be used, by column."""

    conditions: Conditions

    def admits_range(self, unit: FileRange) -> bool:
        """Return whether a range may hold a row that Spark keeps."""
        file = unit.file
        facts = {
            "path": file.path,
            "cluster_id": file.cluster_id,
            "node_id": file.node_id,
            "file_kind": file.kind.value,
        }
        return all_match(self.conditions, facts) and offsets_may_match(self.conditions, unit)

    @property
    def types(self) -> frozenset[str] | None:
        """The names of the types that are wanted; None for all of them."""
        condition = self.conditions.get("type")
        return None if condition is None else condition.values


NO_FILTER: Final = RowFilter({})


class BatchFilter:
    """The conditions of a query on batches: by their headers, and by their raw bytes."""

    def __init__(self, row_filter: RowFilter) -> None:
        conditions = row_filter.conditions
        self._conditions = conditions
        self._is_bounded = not conditions.keys().isdisjoint(BOUND_COLUMNS)
        self._admits_metadata = _admits_kind(row_filter, METADATA, NUMBERS)
        self._admits_control = _admits_kind(row_filter, CONTROL, CONTROL_NAMES)
        found = (_needles(column, conditions) for column in NEEDLE_COLUMNS)
        self._needles = [needles for needles in found if needles is not None]

    def admits(self, batch: RecordBatch) -> bool:
        """Return whether a batch may hold a row that Spark keeps."""
        if not (self._admits_control if batch.is_control else self._admits_metadata):
            return False
        if self._is_bounded and not self._may_be_within(batch):
            return False
        return self._has_needles(batch)

    def _may_be_within(self, batch: RecordBatch) -> bool:
        bounds = {
            "offset": (batch.base_offset, batch.last_offset),
            "epoch": (batch.partition_leader_epoch, batch.partition_leader_epoch),
            # The time of the first record need not be the lowest.
            "timestamp": (None, batch.max_timestamp),
        }
        return all_may_match(self._conditions, bounds)

    def _has_needles(self, batch: RecordBatch) -> bool:
        """Return whether one of the wanted topics' ids and names is among the bytes at all."""
        if not self._needles or batch.attributes & COMPRESSION_MASK:
            return True
        data = bytes(batch.data)
        for needles in self._needles:
            # A generator would cost more than the search.
            for needle in needles:
                if needle in data:
                    break
            else:
                return False
        return True


def _admits_kind(row_filter: RowFilter, kind: str, types: Collection[str]) -> bool:
    """Return whether batches of one kind of records may have a wanted kind and type."""
    if not all_match(row_filter.conditions, {"record_kind": kind}):
        return False
    return row_filter.types is None or not row_filter.types.isdisjoint(types)


def _needles(column: str, conditions: Conditions) -> list[bytes] | None:
    """Return bytes of which one is in every record that has a wanted value; None if unknown."""
    condition = conditions.get(column)
    if condition is None or condition.values is None:
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
