"""Offsets of open transactions: they wait for the marker of their producer."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvorum.groups.offsets.offset_and_metadata import OffsetAndMetadata
from kvorum.groups.offsets.offset_table import OffsetTable, TopicPartition
from kvorum.groups.timeline import Timeline, TimelineMap


@dataclass(slots=True)
class PendingOffsets:
    """Offsets by producer id, and which producers have one for a partition."""

    timeline: Timeline
    open_transactions: OffsetTable[frozenset[int]] = field(init=False)
    """Producer ids by group, topic and partition."""
    _producers: TimelineMap[int, OffsetTable[OffsetAndMetadata]] = field(init=False)

    def __post_init__(self) -> None:
        self.open_transactions = OffsetTable(self.timeline)
        self._producers = TimelineMap(self.timeline)

    def tables(self) -> list[OffsetTable[OffsetAndMetadata]]:
        """Return the offsets of each producer."""
        return [table for _, table in self._producers.items()]

    def has_group(self, group_id: str) -> bool:
        """Return whether a transaction with an offset of the group is open."""
        return self.open_transactions.topics(group_id) is not None

    def has(self, group_id: str, where: TopicPartition) -> bool:
        """Return whether a transaction with an offset of the partition is open."""
        return self.open_transactions.get(group_id, where) is not None

    def put(
        self, producer_id: int, group_id: str, where: TopicPartition, value: OffsetAndMetadata
    ) -> None:
        """Keep an offset until the producer's marker comes."""
        table = self._producers.get(producer_id)
        if table is None:
            table = OffsetTable[OffsetAndMetadata](self.timeline)
            self._producers.set(producer_id, table)
        table.put(group_id, where, value)
        producers = self.open_transactions.get(group_id, where) or frozenset()
        self.open_transactions.put(group_id, where, producers | {producer_id})

    def clear(self, group_id: str, where: TopicPartition) -> None:
        """Drop the offsets that all producers have for a partition."""
        for producer_id in self.open_transactions.get(group_id, where) or ():
            table = self._producers.get(producer_id)
            if table is not None:
                table.remove(group_id, where)
        self.open_transactions.remove(group_id, where)

    def end(self, producer_id: int) -> list[tuple[str, TopicPartition, OffsetAndMetadata]]:
        """Drop the offsets of a producer and return them."""
        table = self._producers.remove(producer_id)
        if table is None:
            return []
        ended = [
            (group_id, where, value)
            for group_id in table.groups()
            for where, value in table.entries(group_id)
        ]
        for group_id, where, _ in ended:
            self._remove_producer(producer_id, group_id, where)
        return ended

    def _remove_producer(self, producer_id: int, group_id: str, where: TopicPartition) -> None:
        producers = self.open_transactions.get(group_id, where)
        if producers is None:
            return
        others = producers - {producer_id}
        if others:
            self.open_transactions.put(group_id, where, others)
        else:
            self.open_transactions.remove(group_id, where)
