"""Log positions: their order and the rules for them, against Kafka's own and logs spelled out."""

from collections.abc import Iterator
from itertools import chain, combinations, combinations_with_replacement, product

import pytest
from tests.unit.wire.log_matching import is_log_matching

from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import (
    EpochStart,
    LogOutline,
    ValidityKind,
    ValidOffsetAndEpoch,
    end_offset_for_epoch,
    validate_offset_and_epoch,
)

LOGS = [log for size in range(5) for log in combinations_with_replacement(range(1, 4), size)]
"""Every log of up to four records with epochs from 1 to 3: the epoch of each record."""
POSITIONS = [OffsetAndEpoch(offset, epoch) for offset, epoch in product(range(6), range(5))]
EVERY = [OffsetAndEpoch(offset, epoch) for offset, epoch in product(range(3), repeat=2)]


def outlines(records: tuple[int, ...]) -> Iterator[LogOutline]:
    """Yield every state that a log of these records may be in.

    It may start at 0 or anywhere that a snapshot reaches, have any later snapshots, and know its
    epochs from its start on or, as after a restart, only from any of its snapshots on, unless that
    is where it ends.
    """
    ends = range(1, len(records) + 1)
    for chosen in chain.from_iterable(combinations(ends, count) for count in range(len(ends) + 1)):
        snapshots = tuple(OffsetAndEpoch(end, records[end - 1]) for end in chosen)
        for start in range((chosen[0] if chosen else 0) + 1):
            for known_from in {start, *chosen} - ({len(records)} - {start}):
                epochs = epochs_from(records, known_from)
                last_epoch = epochs[-1].epoch if epochs else max(snapshots).epoch if chosen else 0
                yield LogOutline(
                    start_offset=start,
                    end_offset=len(records),
                    last_epoch=last_epoch,
                    epochs=epochs,
                    snapshots=snapshots,
                )


def epochs_from(records: tuple[int, ...], start: int) -> tuple[EpochStart, ...]:
    firsts = {epoch: offset for offset, epoch in reversed(list(enumerate(records))[start:])}
    return tuple(EpochStart(epoch, firsts[epoch]) for epoch in sorted(firsts))


def kafka_end_offset(log: LogOutline, epoch: int) -> OffsetAndEpoch:
    """KafkaRaftLog.endOffsetForEpoch over LeaderEpochFileCache.endOffsetFor, step by step."""
    if not log.epochs or epoch > log.epochs[-1].epoch:
        return OffsetAndEpoch(log.end_offset, log.last_epoch)
    if epoch == log.epochs[-1].epoch:
        return OffsetAndEpoch(log.end_offset, epoch)
    higher = next(entry for entry in log.epochs if entry.epoch > epoch)
    lower = [entry for entry in log.epochs if entry.epoch <= epoch]
    found = OffsetAndEpoch(higher.start_offset, lower[-1].epoch if lower else epoch)
    earliest = min(log.snapshots, default=None)
    if earliest is not None and (found.offset, found.epoch) == (earliest.offset, epoch):
        return earliest
    return found


def kafka_validity(log: LogOutline, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
    """RaftLog.validateOffsetAndEpoch, step by step."""
    if log.start_offset == 0 and position.offset == 0:
        return ValidOffsetAndEpoch(ValidityKind.VALID, OffsetAndEpoch(0, 0))
    if log.snapshots:
        earliest = min(log.snapshots)
        if (
            position.offset < log.start_offset
            or (position.offset == log.start_offset and position.epoch != earliest.epoch)
            or position.epoch < earliest.epoch
        ):
            return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, max(log.snapshots))
    end = kafka_end_offset(log, position.epoch)
    if end.epoch != position.epoch or end.offset < position.offset:
        return ValidOffsetAndEpoch(ValidityKind.DIVERGING, end)
    return ValidOffsetAndEpoch(ValidityKind.VALID, position)


@pytest.mark.parametrize("records", LOGS)
def test_the_ends_of_epochs_are_kafkas(records: tuple[int, ...]) -> None:
    for log in outlines(records):
        for epoch in range(5):
            assert end_offset_for_epoch(log, epoch) == kafka_end_offset(log, epoch), log


@pytest.mark.parametrize("records", LOGS)
def test_only_forgotten_epochs_are_judged_otherwise_than_by_kafka(records: tuple[int, ...]) -> None:
    for log in outlines(records):
        for position in POSITIONS:
            ours, kafkas = validate_offset_and_epoch(log, position), kafka_validity(log, position)
            first_known = log.epochs[0].start_offset if log.epochs else log.end_offset
            is_forgotten = position.offset <= first_known and position not in log.snapshots
            if ours == kafkas:
                continue
            assert log.snapshots, (log, position)
            assert is_forgotten, (log, position)
            assert kafkas.kind is ValidityKind.VALID
            assert ours == ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, max(log.snapshots))


@pytest.mark.parametrize("records", LOGS)
def test_a_replica_goes_on_only_behind_records_that_are_the_same(records: tuple[int, ...]) -> None:
    others = [other for other in LOGS if other and is_log_matching(records, other)]
    for log in outlines(records):
        for other in others:
            position = OffsetAndEpoch(len(other), other[-1])
            kind, found = validate_offset_and_epoch(log, position)
            is_same = other == records[: len(other)]
            if kind is ValidityKind.VALID:
                assert is_same, (log, other)
            if is_same and position.offset >= log.start_offset:
                assert kind is not ValidityKind.DIVERGING, (log, other, found)


def test_the_space_is_not_empty() -> None:
    every = [log for records in LOGS for log in outlines(records)]
    judged = [
        validate_offset_and_epoch(log, position).kind for log in every for position in POSITIONS
    ]
    assert len(every) > 1_000
    assert all(judged.count(kind) > 1_000 for kind in ValidityKind)
    differing = [
        (log, position)
        for log in every
        for position in POSITIONS
        if validate_offset_and_epoch(log, position) != kafka_validity(log, position)
    ]
    assert len(differing) > 100


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
