"""The shares of partitions in the bytes of one fetch (Kafka's PartitionMaxBytesStrategy)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


def partition_max_bytes(
    max_bytes: int, partition_count: int, acquired_count: int, random: Random
) -> list[int]:
    """Return the bytes that each of `partition_count` partitions may return.

    The bytes are spread over all that are acquired, those too whose records are read already; what
    is left over goes to any one. Where there are fewer bytes than partitions, as many as there are
    bytes may return their first batch.
    """
    if max_bytes >= acquired_count:
        return _spread(max_bytes, acquired_count, partition_count, random)
    if max_bytes >= partition_count:
        return _spread(max_bytes, partition_count, partition_count, random)
    shares = [0] * partition_count
    first = random.randrange(partition_count)
    for step in range(max_bytes):
        shares[(first + step) % partition_count] = 1
    return shares


def _spread(max_bytes: int, among: int, partition_count: int, random: Random) -> list[int]:
    share, rest = divmod(max_bytes, among)
    shares = [share] * partition_count
    if rest:
        shares[random.randrange(partition_count)] += rest
    return shares
