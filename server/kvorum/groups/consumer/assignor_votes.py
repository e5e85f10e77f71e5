"""The assignor that most members of a group ask for (ConsumerGroup.computePreferredServerAssignor).

Of assignors with the same number of votes, the first one of a table of Java counts. A vote that is
taken back and given again moves within that table: a group of which one member asks for "range" and
another one for "uniform" prefers one of them now and then the other, in Kafka too.
"""

from collections.abc import Mapping

from kvorum.coordinator.timeline_order import timeline_order
from kvorum.groups.assignors.hash_table import HashTable, capacity_for
from kvorum.metadata.java_hash import spread_hash
from kvorum.metadata.java_order import in_java_order


def preferred_assignor(votes: Mapping[str, int]) -> str | None:
    """Return the assignor that is preferred by these votes, None without one."""
    return max(_in_order(votes), key=votes.__getitem__, default=None)


def preferred_assignor_after(
    votes: Mapping[str, int], *, taken_back: str | None, given: str | None
) -> str | None:
    """Return the preferred assignor after a member has taken its vote back and given another."""
    counts = dict(votes)
    capacity = capacity_for(len(counts))
    table = HashTable(spread_hash, capacity, _in_order(counts), order_of=in_java_order)
    if taken_back is not None:
        counts[taken_back] -= 1
        if not counts[taken_back]:
            table.remove(taken_back)
    if given is not None:
        counts[given] = counts.get(given, 0) + 1
        table.compute_if_absent(given)
    return max(table.in_order(), key=counts.__getitem__, default=None)


def _in_order(votes: Mapping[str, int]) -> list[str]:
    return timeline_order(list(votes), len(votes))
