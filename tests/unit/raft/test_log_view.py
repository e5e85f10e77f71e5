"""The view of the log that a core has: ends, epochs, truncation, snapshots, divergence."""

from itertools import combinations, combinations_with_replacement

import pytest
from tests.unit.wire.log_matching import is_log_matching

from kvorum.raft.log_view import LogView
from kvorum.raft.responses import truncation_offset
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import ValidityKind

LOGS = [log for size in range(5) for log in combinations_with_replacement(range(1, 5), size)]
"""Every log of up to four records with epochs from 1 to 4: the epoch of each record."""


def view(epochs: tuple[int, ...]) -> LogView:
    made = LogView()
    for epoch in epochs:
        made.append(epoch=epoch, count=1)
    made.became_durable(len(epochs))
    return made


def common_prefix(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The common part of two logs: in Raft, records of one offset and epoch are the same record."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


@pytest.mark.parametrize("epochs", LOGS)
def test_the_end_of_each_epoch_is_behind_its_last_record(epochs: tuple[int, ...]) -> None:
    log = view(epochs)
    assert log.end == OffsetAndEpoch(len(epochs), epochs[-1] if epochs else 0)
    for epoch in set(epochs):
        end = max(offset for offset, known in enumerate(epochs) if known == epoch) + 1
        assert log.end_offset_for(epoch) == OffsetAndEpoch(end, epoch)
    for missing in set(range(1, 5)) - set(epochs):
        below = [offset for offset, known in enumerate(epochs) if known < missing]
        if below:
            assert log.end_offset_for(missing) == OffsetAndEpoch(below[-1] + 1, epochs[below[-1]])


def test_fetching_and_truncating_ends_in_the_leaders_log_and_never_cuts_what_agrees() -> None:
    count = 0
    for leader_epochs in LOGS:
        for follower_epochs in LOGS:
            if is_log_matching(leader_epochs, follower_epochs):
                catch_up(leader_epochs, list(follower_epochs))
                count += 1
    assert count > 500


def catch_up(leader_epochs: tuple[int, ...], records: list[int]) -> None:
    """Fetch record by record until the follower has the leader's log."""
    leader = view(leader_epochs)
    for _ in range(20):
        log = view(tuple(records))
        verdict, point = leader.judge(log.end)
        if verdict is ValidityKind.DIVERGING:
            cut = truncation_offset(log, point)
            assert common_prefix(leader_epochs, tuple(records)) <= cut < len(records)
            del records[cut:]
        elif point.offset < len(leader_epochs):
            records.append(leader_epochs[point.offset])
        else:
            break
    assert tuple(records) == leader_epochs


def test_truncation_takes_durability_and_epochs_along() -> None:
    log = view((1, 1, 2, 3))
    log.truncate_to(2)
    assert (log.end, log.durable_end_offset) == (OffsetAndEpoch(2, 1), 2)
    log.append(epoch=4, count=3)
    assert (log.end_offset, log.durable_end_offset) == (5, 2)
    assert not log.became_durable(2)
    assert log.became_durable(99)
    assert log.durable_end_offset == 5


def test_epochs_never_go_back_and_appends_are_never_empty() -> None:
    log = view((3,))
    with pytest.raises(ValueError, match="epoch 2"):
        log.append(epoch=2, count=1)
    with pytest.raises(ValueError, match="0 records"):
        log.append(epoch=3, count=0)


def test_a_log_that_begins_after_a_snapshot_sends_others_there() -> None:
    log = LogView()
    log.replace_by_snapshot(OffsetAndEpoch(10, 2))
    assert log.end == OffsetAndEpoch(10, 2)
    log.append(epoch=3, count=5)
    snapshot = (ValidityKind.SNAPSHOT, OffsetAndEpoch(10, 2))
    assert log.judge(OffsetAndEpoch(0, 0)) == snapshot
    assert log.judge(OffsetAndEpoch(9, 2)) == snapshot
    assert log.judge(OffsetAndEpoch(10, 1)) == snapshot
    assert log.judge(OffsetAndEpoch(10, 3)) == snapshot
    assert log.judge(OffsetAndEpoch(12, 1)) == snapshot
    assert log.judge(OffsetAndEpoch(10, 2)) == (ValidityKind.VALID, OffsetAndEpoch(10, 2))
    assert log.judge(OffsetAndEpoch(12, 3)) == (ValidityKind.VALID, OffsetAndEpoch(12, 3))
    assert log.judge(OffsetAndEpoch(12, 2)) == (ValidityKind.DIVERGING, OffsetAndEpoch(10, 2))
    assert log.judge(OffsetAndEpoch(16, 3)) == (ValidityKind.DIVERGING, OffsetAndEpoch(15, 3))


def test_giving_up_the_start_keeps_the_epoch_in_force_there() -> None:
    log = view((1, 1, 2, 2, 3))
    log.add_snapshot(OffsetAndEpoch(3, 2))
    log.start_moved(3, [OffsetAndEpoch(3, 2)])
    assert log.start_offset == 3
    assert log.end_offset_for(2) == OffsetAndEpoch(4, 2)
    assert log.end_offset_for(1) == OffsetAndEpoch(3, 2)


def test_the_bootstrap_snapshot_is_never_fetched() -> None:
    log = LogView(snapshots=[OffsetAndEpoch(0, 0)])
    assert log.latest_snapshot == OffsetAndEpoch(0, 0)
    assert log.latest_loadable_snapshot is None
    assert log.judge(OffsetAndEpoch(0, 0)) == (ValidityKind.VALID, OffsetAndEpoch(0, 0))


@pytest.mark.parametrize("epochs", [log for log in LOGS if len(log) > 1])
def test_no_node_is_believed_that_may_have_other_records(epochs: tuple[int, ...]) -> None:
    """After a restart a log may reach further back than its epochs, and older snapshots be back."""
    others = [other for other in LOGS if other and is_log_matching(epochs, other)]
    for older, start in combinations(range(len(epochs)), 2):
        log = view(epochs)
        for offset in {start, older} - {0}:
            log.add_snapshot(OffsetAndEpoch(offset, epochs[offset - 1]))
        log.start_moved(start, log.snapshots)
        log.start_offset = 0
        for other in others:
            verdict, _ = log.judge(OffsetAndEpoch(len(other), other[-1]))
            is_ours = other == epochs[: len(other)]
            assert is_ours or verdict is not ValidityKind.VALID, (other, start, older)
            if is_ours and len(other) >= start:
                assert verdict is ValidityKind.VALID, (other, start, older)
