"""The partition of a key, as Kafka computes it for an internal topic of 50 partitions."""

import pytest

from kvorum.coordinator.coordinator_partition import coordinator_partition


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("", 0),
        ("test", 48),
        ("my-group", 12),
        ("console-consumer-12345", 6),
        ("polygenelubricants", 0),
        ("grp-é", 47),
        ("a" * 300, 14),
    ],
)
def test_keys_are_spread_by_javas_hash(key: str, partition: int) -> None:
    assert coordinator_partition(key, 50) == partition
