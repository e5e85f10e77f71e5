"""The members of a voter set, and the changes of it that are safe."""

from itertools import combinations, product

import pytest
from tests.unit.raft.core_builder import voters_of

from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet


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
