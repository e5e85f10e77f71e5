"""The log and the voters as a core knows them: mirror, set, history, elections, high watermark."""

from itertools import combinations, combinations_with_replacement, product

import pytest
from tests.unit.raft.core_builder import key_of, static_voters_of, voters_of
from tests.unit.wire.log_matching import is_log_matching

from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.log_view import LogView
from kvorum.raft.responses import truncation_offset
from kvorum.raft.roles import advanced_high_watermark, majority_offset
from kvorum.raft.voter_changes.steps import endpoints_text, key_text, keys_text, offset_text
from kvorum.raft.voter_set import EpochElection, Voter, VoterSet, VoterSetHistory
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.uuid_text import uuid_from_text
from kvorum.wire.valid_offset_and_epoch import ValidityKind

LOGS = [log for size in range(5) for log in combinations_with_replacement(range(1, 5), size)]
"""Every log of up to four records with epochs from 1 to 4: the epoch of each record."""
SETS = [
    "1:uwNZvy01y1gWmBpDnKAc4A",
    "2:ctdYNG10jFKynUaOwKjXLw 1:fSjZFPHp28p2Ovab04kJRw 3:RxvCF1iC5EHCjMrI1s4tFA",
    (
        "2:4tSNSFFtETo41RjRUyW_OA 3:4kXdkwY5bTVwgNE4URe5bg 5:4aoJWzMwhtJIfHLVqi1WzQ "
        "4:ZJOMxajOXYD-psGCqjuB2Q 1:OCBoVHZhfM7roECCu0WHYg"
    ),
    (
        "5:TUWjUHlNjBsgHHGfHUA3sA 7:M9h2xrk5B8YIuz0mUnronQ 2:gwiFiH-HBFcTw98bjbVS-w "
        "4:c2NO6nlMeldaw-3Zue1n-g 6:WYivxZcTr8mxO8N2oFrizw 1:P3F75Q9mRv-X89QDfVFo4g "
        "3:CkfxqlZlj0yu3YRH1kKOhA"
    ),
]
"""Sets of keys, each in the order in which a `Set<ReplicaKey>` of voters was printed."""


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


def test_a_voter_without_directory_id_is_known_by_its_id() -> None:
    static = VoterSet.of([Voter(ReplicaKey(1), ())])
    assert static.is_voter(ReplicaKey(1))
    assert static.is_voter(ReplicaKey(1, b"a" * 16))
    assert not static.is_voter(ReplicaKey(2))


def test_a_voter_with_directory_id_is_another_one_with_another_directory() -> None:
    dynamic = voters_of(1)
    assert dynamic.is_voter(ReplicaKey(1, b"\x01" * 16))
    assert not dynamic.is_voter(ReplicaKey(1, b"\x02" * 16))
    assert not dynamic.is_voter(ReplicaKey(1))
    assert dynamic.is_only_voter(ReplicaKey(1, b"\x01" * 16))
    assert not voters_of(1, 2).is_only_voter(ReplicaKey(1, b"\x01" * 16))


def test_two_voters_cannot_have_one_id() -> None:
    with pytest.raises(ValueError, match="same id"):
        VoterSet.of([Voter(ReplicaKey(1, b"a" * 16), ()), Voter(ReplicaKey(1, b"b" * 16), ())])


def test_sets_are_ordered_changed_and_asked() -> None:
    endpoint = Endpoint("CONTROLLER", "host", 9093)
    three = VoterSet.of([Voter(ReplicaKey(3), (endpoint,)), *voters_of(1, 2).voters])
    assert three.ids == (1, 2, 3)
    assert three.majority == 2
    assert three.endpoint_of(3, "CONTROLLER") == endpoint
    assert three.endpoint_of(3, "OTHER") is None
    assert three.endpoints_of(9) == ()
    assert three.without(3) == voters_of(1, 2)
    assert three.without(3).with_voter(voters_of(3).voters[0]) == voters_of(1, 2, 3)
    assert [voter.key.id for voter in three.others(ReplicaKey(2, b"\x02" * 16))] == [1, 3]


def test_a_change_is_safe_only_if_all_majorities_of_both_sets_meet() -> None:
    sets = [s for size in range(1, 5) for s in combinations(range(4), size)]
    for old, new in product(sets, sets):
        if voters_of(*old).overlaps_safely(voters_of(*new)):
            assert (
                all(set(one) & set(other) for one in majorities(old) for other in majorities(new))
                or len(set(old) ^ set(new)) == 2
            )


def majorities(ids: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(combinations(ids, len(ids) // 2 + 1))


def test_static_voters_count_until_the_log_says_otherwise() -> None:
    history = VoterSetHistory(static=voters_of(9))
    assert history.voters == voters_of(9)
    assert history.voters_offset is None
    assert history.recorded_voters_at(10) is None
    history.add_voters(4, voters_of(1))
    assert history.voters == voters_of(1)
    assert history.voters_at(4) == voters_of(9)
    history.truncate_to(4)
    assert history.voters == voters_of(9)


def test_the_bootstrap_snapshot_counts_as_before_the_log() -> None:
    history = VoterSetHistory()
    history.start_from_snapshot(BOOTSTRAP_SNAPSHOT_ID, voters=voters_of(1), kraft_version=1)
    assert history.voters_offset == -1
    assert history.kraft_version_at(0) == 1
    history.truncate_to(0)
    assert history.voters == voters_of(1)


def test_a_snapshot_replaces_everything() -> None:
    history = VoterSetHistory(static=voters_of(9))
    history.add_voters(3, voters_of(1, 2))
    history.start_from_snapshot(OffsetAndEpoch(10, 2), voters=voters_of(1), kraft_version=1)
    assert history.voters == voters_of(1)
    assert history.recorded_voters_at(10) == voters_of(1)
    assert history.recorded_voters_at(9) is None
    history.start_from_snapshot(OffsetAndEpoch(20, 2), voters=None, kraft_version=0)
    assert history.voters == voters_of(9)


def test_changes_come_in_order() -> None:
    history = VoterSetHistory()
    history.add_kraft_version(5, 1)
    with pytest.raises(ValueError, match="behind"):
        history.add_voters(4, voters_of(1))


def test_truncation_reverts_to_what_the_prefix_says_for_every_log_and_every_cut() -> None:
    for kinds in product(["voters", "version", "data"], repeat=5):
        for cut in range(7):
            history = VoterSetHistory(static=voters_of(9))
            fill(history, kinds)
            history.truncate_to(cut)
            prefix = VoterSetHistory(static=voters_of(9))
            fill(prefix, kinds[:cut])
            assert history == prefix
            assert history.voters_at(2) == prefix.voters_at(2)
            assert history.kraft_version == prefix.kraft_version


def fill(history: VoterSetHistory, kinds: tuple[str, ...]) -> None:
    for offset, kind in enumerate(kinds):
        if kind == "voters":
            history.add_voters(offset, voters_of(offset + 1))
        elif kind == "version":
            history.add_kraft_version(offset, offset % 2)


def keys_of(line: str) -> list[ReplicaKey]:
    words = [word.partition(":") for word in line.split()]
    return [ReplicaKey(int(node_id), uuid_from_text(text)) for node_id, _, text in words]


@pytest.mark.parametrize("line", SETS)
def test_keys_come_in_the_order_of_a_java_set(line: str) -> None:
    keys = keys_of(line)
    assert keys_text(sorted(keys, key=lambda key: key.id)) == f"[{', '.join(map(key_text, keys))}]"


def test_a_key() -> None:
    (key,) = keys_of(SETS[0])
    assert key_text(key) == "ReplicaKey(id=1, directoryId=uwNZvy01y1gWmBpDnKAc4A)"
    assert key_text(ReplicaKey(7)) == "ReplicaKey(id=7, directoryId=<undefined>)"


def test_endpoints() -> None:
    expected = "Endpoints(endpoints={ListenerName(OTHER)=host/<unresolved>:9})"
    assert endpoints_text((Endpoint("OTHER", "host", 9),)) == expected
    assert endpoints_text(()) == "Endpoints(endpoints={})"


def test_an_offset() -> None:
    assert offset_text(None) == "Optional.empty"
    assert offset_text(7) == "Optional[7]"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_an_election_is_won_or_lost_exactly_when_no_answer_can_change_that(size: int) -> None:
    ids = range(1, size + 1)
    for answers in product([None, True, False], repeat=size - 1):
        tally = EpochElection(voters_of(*ids), own_key=key_of(1))
        for voter_id, answer in zip(ids[1:], answers, strict=True):
            if answer is not None:
                assert tally.record(key_of(voter_id), is_granted=answer)
        granted = 1 + answers.count(True)
        possible = granted + answers.count(None)
        assert tally.is_granted == (2 * granted > size)
        assert tally.is_rejected == (2 * possible <= size)
        assert not (tally.is_granted and tally.is_rejected)
        assert len(tally.granted) == granted
        assert len(tally.unrecorded) == answers.count(None)


def test_only_the_first_answer_of_a_voter_counts() -> None:
    tally = EpochElection(voters_of(1, 2, 3), own_key=key_of(1))
    assert tally.record(key_of(2), is_granted=False)
    assert not tally.record(key_of(2), is_granted=True)
    assert tally.granted == (key_of(1),)
    assert not tally.record(key_of(1), is_granted=False)
    assert tally.granted == (key_of(1),)


@pytest.mark.parametrize("own_key", [key_of(1), key_of(2, 9)])
def test_a_nominee_that_is_not_a_voter_has_no_vote(own_key: ReplicaKey) -> None:
    tally = EpochElection(voters_of(2, 3), own_key=own_key)
    assert tally.granted == ()
    assert not tally.record(own_key, is_granted=True)
    assert not tally.is_granted
    assert tally.record(key_of(2), is_granted=True)
    assert tally.record(key_of(3), is_granted=True)
    assert tally.is_granted


def test_a_voter_that_is_known_by_its_id_alone_has_its_vote_in_any_directory() -> None:
    tally = EpochElection(static_voters_of(1, 2, 3), own_key=key_of(1, 9))
    assert tally.granted == (ReplicaKey(1),)
    assert tally.record(ReplicaKey(2), is_granted=True)
    assert tally.is_granted


def test_a_lone_voter_has_won_at_once() -> None:
    assert EpochElection(voters_of(7), own_key=key_of(7)).is_granted


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_majority_offset_is_the_highest_that_more_than_half_have(size: int) -> None:
    for ends in combinations_with_replacement(range(5), size):
        expected = max(
            offset for offset in range(5) if 2 * sum(end >= offset for end in ends) > size
        )
        assert majority_offset(ends) == expected


def test_an_empty_set_has_no_majority() -> None:
    with pytest.raises(ValueError, match="no voters"):
        majority_offset([])
    assert advanced_high_watermark(current=3, end_offsets=[], epoch_start_offset=0) is None


def test_the_high_watermark_only_rises_and_only_past_the_epochs_start() -> None:
    for ends in product(range(5), repeat=3):
        for current in (None, 0, 1, 2, 3, 4):
            for start in range(5):
                advanced = advanced_high_watermark(
                    current=current, end_offsets=ends, epoch_start_offset=start
                )
                offset = majority_offset(ends)
                if advanced is None:
                    assert offset <= start or (current is not None and offset <= current)
                else:
                    assert advanced == offset > start
                    assert current is None or advanced > current
