"""The order of log positions is that of Kafka's OffsetAndEpoch.compareTo: the epoch decides."""

from itertools import product

from kvorum.wire.offset_and_epoch import OffsetAndEpoch

EVERY = [OffsetAndEpoch(offset, epoch) for offset, epoch in product(range(3), repeat=2)]


def kafka_compares(one: OffsetAndEpoch, other: OffsetAndEpoch) -> int:
    """Return below zero, zero or above, as Java's compareTo."""
    if one.epoch == other.epoch:
        return one.offset - other.offset
    return one.epoch - other.epoch


def test_every_comparison_is_kafkas() -> None:
    for one, other in product(EVERY, repeat=2):
        expected = kafka_compares(one, other)
        assert (one < other) == (expected < 0)
        assert (one <= other) == (expected <= 0)
        assert (one > other) == (expected > 0)
        assert (one >= other) == (expected >= 0)
        assert (one == other) == (expected == 0)
        assert (hash(one) == hash(other)) >= (expected == 0)


def test_a_later_epoch_is_greater_than_a_higher_offset() -> None:
    assert max(OffsetAndEpoch(9, 1), OffsetAndEpoch(2, 2)) == OffsetAndEpoch(2, 2)
    assert sorted(EVERY)[:2] == [OffsetAndEpoch(0, 0), OffsetAndEpoch(1, 0)]
