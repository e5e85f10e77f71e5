"""The tables of Kafka's that hold the assignment of a member."""

from collections.abc import Iterable

from kvorum.groups.assignors.hash_table import HashTable, capacity_of, set_capacity
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.metadata.java_hash import FIRST_CAPACITY, spread_integer
from kvorum.wire.uuid_hash import uuid_hash
from kvorum.wire.uuid_order import uuid_order


def topic_table(capacity: int, topic_ids: Iterable[bytes] = ()) -> HashTable[bytes]:
    """Return a table of topic ids, into which they are put in the order given."""
    return HashTable(_spread_uuid, capacity, topic_ids, order_of=uuid_order)


def _spread_uuid(topic_id: bytes) -> int:
    return spread_integer(uuid_hash(topic_id))


def _partition_table(partitions: OrderedSet[int]) -> HashTable[int]:
    return HashTable(spread_integer, set_capacity(len(partitions)), partitions)


def as_iterated(assigned: Assignment) -> Assignment:
    """Return an assignment that was read from a record in the order of Kafka's tables of it."""
    return {
        topic_id: OrderedSet(_partition_table(assigned[topic_id]).in_order())
        for topic_id in topic_table(FIRST_CAPACITY, assigned).in_order()
    }


class MemberTarget:
    """A copy of a member's assignment that an assignor changes (Kafka's deepCopyAssignment)."""

    def __init__(self, iterated: Assignment) -> None:
        """Copy an assignment that is in the order of Kafka's tables (`as_iterated`)."""
        self._topics = topic_table(capacity_of(len(iterated)), iterated)
        self._partitions = {
            topic_id: _partition_table(partitions) for topic_id, partitions in iterated.items()
        }

    def add(self, topic_id: bytes, partition: int, *, capacity: int = FIRST_CAPACITY) -> None:
        """Add a partition; the table of a topic's first one has that capacity."""
        self._topics.compute_if_absent(topic_id)
        table = self._partitions.get(topic_id)
        if table is None:
            table = self._partitions[topic_id] = HashTable(spread_integer, capacity)
        table.put(partition)

    def remove(self, topic_id: bytes, partition: int) -> None:
        """Remove a partition, and its topic with the last one."""
        self.empty(topic_id, partition)
        if not self._partitions[topic_id]:
            self.remove_topic(topic_id)

    def empty(self, topic_id: bytes, partition: int) -> None:
        """Remove a partition; its topic stays, also without any."""
        self._partitions[topic_id].remove(partition)

    def remove_topic(self, topic_id: bytes) -> None:
        """Remove a topic with its partitions."""
        self._topics.remove(topic_id)
        del self._partitions[topic_id]

    def assignment(self) -> Assignment:
        """Return the assignment, in the order of the tables."""
        return {
            topic_id: OrderedSet(self._partitions[topic_id].in_order())
            for topic_id in self._topics.in_order()
        }
