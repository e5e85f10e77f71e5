"""Each property of reassignments is broken once, and noticed."""

import pytest
from immutables import Map
from tests.support.pretended_quorum import PretendedQuorum, broken, directory_id, fetch_request

from kvorum.controller.quorum_reassignment.next_step import AddVoter, HandOver, Reached, RemoveVoter
from kvorum.metadata.cluster_image import ControllerRegistration
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.record_frame import encode_record
from kvorum.metadata.voters import TARGET_VOTERS, VoterKey
from kvorum.node.raft.listener import CommittedBatch
from kvorum.raft import OffsetAndEpoch
from kvorum.simulation.properties.reassignments import IDLE_MS_MAX, Step
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

NEXT_OFFSET = 10


def _commit_targets(quorum: PretendedQuorum, text: str | None, *, offset: int = 5) -> None:
    batch = CommittedBatch(
        base_offset=offset,
        last_offset=max(offset, NEXT_OFFSET - 1),
        epoch=1,
        append_timestamp_ms=0,
        values=(encode_record(ConfigRecord(*CLUSTER_RESOURCE, TARGET_VOTERS, text), 0),),
        is_control=False,
        size_bytes=1,
    )
    quorum.properties.reassignments.take_committed([batch])


def _quorum(recorded: str | None, *, fetching: tuple[int, ...] = (2, 3)) -> PretendedQuorum:
    """Return a quorum of 1, 2 and 3 under the leader 1, from which some fetch."""
    quorum = PretendedQuorum()
    quorum.led_by(1)
    _commit_targets(quorum, recorded)
    for node_id in fetching:
        request = fetch_request(node_id, position=OffsetAndEpoch(1, 1))
        quorum.properties.request_arrives(quorum[1], request)
    return quorum


@pytest.fixture
def quorum() -> PretendedQuorum:
    """One that node 3 is to leave."""
    return _quorum("1,2")


def _take(quorum: PretendedQuorum, step: Step, text: str) -> None:
    quorum.properties.step_taken(quorum[1], text, step, NEXT_OFFSET)


def _add(node_id: int) -> AddVoter:
    known = ControllerRegistration(node_id, directory_id(node_id), False, (), Map())
    return AddVoter(VoterKey(node_id, directory_id(node_id)), known)


def _remove(node_id: int) -> RemoveVoter:
    return RemoveVoter(VoterKey(node_id, directory_id(node_id)))


@pytest.mark.parametrize(
    ("recorded", "step"),
    [("1,2,3,4", _add(4)), ("1,2", _remove(3)), ("2,3", HandOver()), ("1,2,3", Reached())],
    ids=str,
)
def test_a_step_that_leads_to_the_target_voters_breaks_nothing(recorded: str, step: Step) -> None:
    quorum = _quorum(recorded)
    _take(quorum, step, recorded)
    assert quorum.count("P31") > 0


def test_p30_a_node_that_has_missed_the_target_voters(quorum: PretendedQuorum) -> None:
    quorum.properties.targets_known(quorum[2], None, 5)
    quorum.properties.targets_known(quorum[2], "1,2", NEXT_OFFSET)
    with broken("P30"):
        quorum.properties.targets_known(quorum[2], None, NEXT_OFFSET)


def test_p31_a_step_towards_other_target_voters(quorum: PretendedQuorum) -> None:
    with broken("P31"):
        _take(quorum, _remove(3), "1,2,5")


def test_p31_a_step_after_the_target_voters_were_cancelled(quorum: PretendedQuorum) -> None:
    quorum.properties.reassignments.asked_for(None)
    _commit_targets(quorum, None, offset=NEXT_OFFSET)
    with broken("P31"):
        quorum.properties.step_taken(quorum[1], "1,2", _remove(3), NEXT_OFFSET + 1)


def test_p31_target_voters_that_end_by_themselves(quorum: PretendedQuorum) -> None:
    with broken("P31"):
        _commit_targets(quorum, None, offset=NEXT_OFFSET)


def test_target_voters_stated_again_while_they_are_found_reached_end_as_reached() -> None:
    quorum = _quorum("1,2,3")
    _take(quorum, Reached(), "1,2,3")
    _commit_targets(quorum, "1,2,3", offset=NEXT_OFFSET)
    _commit_targets(quorum, None, offset=NEXT_OFFSET + 1)
    assert quorum.properties.reassignments.counts["target voters reached"] == 1


def test_target_voters_stated_again_after_others_before_they_are_cleared_end_as_reached() -> None:
    quorum = _quorum("1,2,3")
    _take(quorum, Reached(), "1,2,3")
    for offset, text in enumerate(("1,2", "2,3", "1,2,3", None), start=NEXT_OFFSET):
        _commit_targets(quorum, text, offset=offset)
    assert quorum.properties.reassignments.counts["target voters reached"] == 1


def test_p31_target_voters_that_end_after_the_voters_have_left_them_again() -> None:
    quorum = _quorum("1,2,3")
    _take(quorum, Reached(), "1,2,3")
    _commit_targets(quorum, "1,2", offset=NEXT_OFFSET)
    quorum.properties.step_taken(quorum[1], "1,2", _remove(3), NEXT_OFFSET + 1)
    _commit_targets(quorum, "1,2,3", offset=NEXT_OFFSET + 1)
    with broken("P31"):
        _commit_targets(quorum, None, offset=NEXT_OFFSET + 2)


def test_p31_target_voters_that_end_in_place_of_those_that_were_reached() -> None:
    quorum = _quorum("1,2,3")
    _take(quorum, Reached(), "1,2,3")
    _commit_targets(quorum, "1,2", offset=NEXT_OFFSET)
    with broken("P31"):
        _commit_targets(quorum, None, offset=NEXT_OFFSET + 1)


def test_p31_a_step_before_the_epoch_is_committed(quorum: PretendedQuorum) -> None:
    quorum[1].commit(None)
    with broken("P31"):
        _take(quorum, _remove(3), "1,2")


@pytest.mark.parametrize(
    ("recorded", "step"),
    [
        ("1,2,4", _remove(2)),
        ("1,2,4", _remove(3)),
        ("1,2", _add(4)),
        ("2", _add(4)),
        ("1,2", Reached()),
        ("2,3,4", HandOver()),
    ],
    ids=str,
)
def test_p31_a_step_that_leads_elsewhere(recorded: str, step: Step) -> None:
    quorum = _quorum(recorded)
    with broken("P31"):
        _take(quorum, step, recorded)


def test_p31_a_change_by_hand_that_leads_away(quorum: PretendedQuorum) -> None:
    add = AddRaftVoterRequest(voter_id=4, voter_directory_id=directory_id(4))
    remove = RemoveRaftVoterRequest(voter_id=2, voter_directory_id=directory_id(2))
    welcome = RemoveRaftVoterRequest(voter_id=3, voter_directory_id=directory_id(3))
    quorum.properties.change_admitted(quorum[1], welcome, NEXT_OFFSET)
    for request in (add, remove):
        with broken("P31"):
            quorum.properties.change_admitted(quorum[1], request, NEXT_OFFSET)


def test_p32_a_removal_after_which_no_majority_fetches() -> None:
    quorum = _quorum("1,2", fetching=(3,))
    with broken("P32"):
        _take(quorum, _remove(3), "1,2")


def test_p32_a_leader_that_removes_itself() -> None:
    quorum = _quorum("2,3")
    with broken("P32"):
        _take(quorum, _remove(1), "2,3")


def test_p32_a_leader_that_hands_over_while_others_are_to_go() -> None:
    quorum = _quorum("2")
    with broken("P32"):
        _take(quorum, HandOver(), "2")


def _look(quorum: PretendedQuorum, now_ms: float) -> None:
    quorum.properties.reassignments.look(now_ms, list(quorum.nodes.values()), quorum[1])


def test_l9_no_node_works_towards_the_target_voters(quorum: PretendedQuorum) -> None:
    quorum.properties.reassignments.begin_calm(0.0)
    _look(quorum, 0.0)
    _look(quorum, IDLE_MS_MAX)
    with broken("L9"):
        _look(quorum, IDLE_MS_MAX + 1)


def test_l9_a_target_that_does_not_run_is_waited_for(quorum: PretendedQuorum) -> None:
    quorum[2].core = None
    quorum.properties.reassignments.begin_calm(0.0)
    for now_ms in (0.0, 10 * IDLE_MS_MAX):
        _look(quorum, now_ms)


def test_l9_target_voters_that_are_reached(quorum: PretendedQuorum) -> None:
    _look(quorum, 0.0)
    before = quorum.count("L9")
    quorum.properties.reassignments.asked_for(None)
    _commit_targets(quorum, None, offset=NEXT_OFFSET)
    _look(quorum, IDLE_MS_MAX + 1)
    assert quorum.count("L9") == before + 1
