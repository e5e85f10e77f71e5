"""Each property about elections, voters and starts is broken once, and noticed."""

from tests.support.pretended_quorum import (
    CLUSTER_ID,
    EMPTY_LOG,
    HERE,
    PretendedNode,
    PretendedQuorum,
    broken,
    directory_id,
    endpoint_of,
    key_of,
    voters_of,
)

from kvorum.node.raft.control_records import voters_record_of
from kvorum.node.raft.translation import begin_quorum_epoch, vote
from kvorum.raft import messages as core
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Follower, Prospective, Unattached
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.simulation.disk_faults import FileKind
from kvorum.simulation.faults import FaultKind
from kvorum.storage.errors import DiskError
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.records import ControlRecord, ControlRecordType, build_control_batch


def _vote_request(
    candidate: int, *, epoch: int, voter: int, is_pre_vote: bool = False, cluster: str = CLUSTER_ID
) -> VoteRequest:
    asked = core.VoteRequest(epoch, key_of(candidate), key_of(voter), EMPTY_LOG, is_pre_vote)
    return vote.write_request(asked, cluster_id=cluster)


def _answer(
    quorum: PretendedQuorum,
    *,
    candidate: int = 1,
    voter: int = 2,
    cluster: str = CLUSTER_ID,
    is_granted: bool = False,
    error: core.Error = core.Error.NONE,
) -> None:
    """Let node 2 answer who asks a node for its vote in epoch 5."""
    request = _vote_request(candidate, epoch=5, voter=voter, cluster=cluster)
    answer = core.VoteResponse(error, core.KnownLeader(5), is_granted=is_granted)
    response = vote.write_answer(answer, version=2, listener_name="CONTROLLER")
    quorum.properties.response_leaves(quorum[2], request, response)


def _stand(
    node: PretendedNode, epoch: int, voters: VoterSet, *, leader_id: int | None = None
) -> None:
    tally = EpochElection(voters, own_key=node.own_core.own_key)
    node.be(Prospective(epoch, tally=tally, election_deadline=0.0, leader_id=leader_id))


def test_a_sound_quorum_breaks_nothing_and_is_looked_at(led: PretendedQuorum) -> None:
    led.replicate(b"a", b"b")
    for node in led.nodes.values():
        node.commit(3)
        node.look()
    led[2].lead(2, start=3)
    led[2].look()
    for checked in ("P1", "P3", "P4", "P5", "P6", "P7", "P10", "P12", "P13", "P18", "P24", "P26"):
        assert led.count(checked) > 0, checked


def test_p1_two_leaders_of_one_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].lead(4)
    quorum[1].look()
    quorum[2].lead(4)
    quorum[2].breaks("P1")


def test_p1_a_leader_that_restarts_and_leads_on(quorum: PretendedQuorum) -> None:
    quorum[1].lead(4)
    quorum[1].look()
    quorum[1].start_count = 2
    with broken("P1"):
        quorum.properties.node_started(quorum[1])


def test_p1_followers_of_two_leaders_in_one_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].follow(4, 2)
    quorum[1].look()
    quorum[2].follow(4, 3)
    quorum[2].breaks("P1")


def test_p2_a_vote_that_is_not_stored(quorum: PretendedQuorum) -> None:
    quorum[2].store(5)
    with broken("P2"):
        _answer(quorum, is_granted=True)


def test_p2_two_votes_in_one_epoch(quorum: PretendedQuorum) -> None:
    quorum[2].store(5, voted=1)
    _answer(quorum, is_granted=True)
    quorum[2].store(5, voted=3)
    with broken("P2"):
        _answer(quorum, candidate=3, is_granted=True)


def test_p2_a_stored_vote_that_changes(quorum: PretendedQuorum) -> None:
    quorum[2].store(5, voted=1)
    quorum[2].look()
    quorum[2].store(5, voted=3)
    quorum[2].breaks("P2")


def test_p2_a_candidate_that_has_not_stored_its_own_vote(quorum: PretendedQuorum) -> None:
    quorum[1].store(5)
    with broken("P2"):
        quorum.properties.request_sent(quorum[1], _vote_request(1, epoch=5, voter=2))


def test_p3_an_epoch_told_before_it_is_stored(quorum: PretendedQuorum) -> None:
    quorum[2].store(4)
    with broken("P3"):
        _answer(quorum)


def test_p3_a_stored_epoch_that_falls(quorum: PretendedQuorum) -> None:
    quorum[2].store(5)
    quorum[2].look()
    quorum[2].store(4)
    quorum[2].breaks("P3")


def test_p8_a_directory_that_cannot_be_opened_again(quorum: PretendedQuorum) -> None:
    quorum[1].append(b"a")
    quorum[1].append(b"b")
    quorum[1].disk.directory_at(HERE).names["00000000000000000000.log"].flip(20, 3)
    with broken("P8"):
        quorum.properties.node_starts(quorum[1])


def test_p21_a_damaged_directory_may_be_refused_by_name(quorum: PretendedQuorum) -> None:
    quorum[1].append(b"a")
    quorum[1].append(b"b")
    assert quorum[1].disk.flip_bit(FileKind.LOG) is not None
    quorum.properties.disk_fault(quorum[1], FaultKind.BIT_FLIP)
    quorum.properties.node_starts(quorum[1])
    assert quorum.count("P21") > 0


def test_p21_a_start_without_what_was_durable(quorum: PretendedQuorum) -> None:
    quorum[1].append(b"a")
    quorum[1].append(b"b")
    quorum[1].follow(1, 2)
    quorum[1].look()
    quorum.properties.node_starts(quorum[1])
    view = quorum[1].own_core.shown_log
    view.end_offset = view.durable_end_offset = 1
    with broken("P21"):
        quorum.properties.node_started(quorum[1])


def test_p21_a_start_below_the_stored_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].store(7)
    quorum[1].look()
    with broken("P21"):
        quorum.properties.node_started(quorum[1])


def test_p21_a_start_refused_without_a_reason(quorum: PretendedQuorum) -> None:
    error = DiskError("no", errno=5, file=HERE)
    with broken("P21"):
        quorum.properties.node_refused_to_start(quorum[1], error)
    quorum.properties.disk_fault(quorum[1], FaultKind.REFUSED_WRITE)
    quorum.properties.node_refused_to_start(quorum[1], error)
    with broken("P21"):
        quorum.properties.node_refused_to_start(quorum[1], ValueError("no"))


def test_p16_a_node_that_is_not_a_voter_stands_for_election(quorum: PretendedQuorum) -> None:
    quorum[1].own_core.shown_history = VoterSetHistory(static=voters_of((2, 3)))
    _stand(quorum[1], 3, voters_of((2, 3)))
    quorum[1].breaks("P16")


def test_p16_a_leader_that_has_removed_itself_may_stand_until_that_is_settled() -> None:
    quorum = PretendedQuorum()
    quorum.led_by(1)
    _add_voters(quorum, 1, voters_of((2, 3)))
    quorum[1].look()
    _stand(quorum[1], 2, voters_of((2, 3)))
    quorum[1].look()
    quorum[1].be(Unattached(3, election_deadline=0.0))
    quorum[1].commit(2)
    for node_id in (2, 3):
        _add_voters(quorum, node_id, voters_of((2, 3)))
        quorum[node_id].look()
    quorum[1].look()
    _stand(quorum[1], 3, voters_of((2, 3)))
    quorum[1].breaks("P16")


def test_p16_a_new_disk_stands_for_the_voter_of_the_old_one(quorum: PretendedQuorum) -> None:
    by_id = VoterSet.of(Voter(ReplicaKey(one), (endpoint_of(one),)) for one in (1, 2, 3))
    for node in quorum.nodes.values():
        node.own_core.shown_history = VoterSetHistory(static=by_id)
    quorum.led_by(2)
    old = Voter(ReplicaKey(1, b"old" + bytes(13)), (endpoint_of(1),), 0, 1)
    _add_voters(quorum, 1, voters_of((2, 3)).with_voter(old))
    quorum[1].look()
    _stand(quorum[1], 1, by_id, leader_id=2)
    quorum[1].breaks("P16")


def test_p29_a_leader_counts_the_vote_of_another_directory(quorum: PretendedQuorum) -> None:
    elections = quorum.properties.elections
    quorum[2].own_core.shown_history = VoterSetHistory(static=voters_of((1, 2, 3, 4, 5)))
    for voter in (key_of(1), key_of(3)):
        elections.vote_given(voter, epoch=4, candidate=key_of(2))
    quorum[2].be_leader(4)
    quorum[2].look()
    elections.vote_given(ReplicaKey(3, b"new" + bytes(13)), epoch=5, candidate=key_of(2))
    elections.vote_given(key_of(1), epoch=5, candidate=key_of(2))
    quorum[2].be_leader(5)
    quorum[2].breaks("P29")


def test_p29_a_leader_that_is_not_a_voter_counts_its_own_vote(quorum: PretendedQuorum) -> None:
    old = Voter(ReplicaKey(1, b"old" + bytes(13)), (endpoint_of(1),), 0, 1)
    quorum[1].own_core.shown_history = VoterSetHistory(static=voters_of((2, 3)).with_voter(old))
    quorum.properties.elections.vote_given(key_of(2), epoch=4, candidate=key_of(1))
    quorum[1].be_leader(4)
    quorum[1].breaks("P29")


def test_p18_a_leader_follows_another_in_its_own_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].lead(4)
    quorum[1].look()
    quorum[1].be(Follower(4, leader_id=1, leader_endpoints=(endpoint_of(1),), fetch_deadline=0.0))
    quorum[1].breaks("P18")


def test_p18_an_epoch_that_falls_in_memory(quorum: PretendedQuorum) -> None:
    quorum[1].be(Unattached(4, election_deadline=0.0))
    quorum[1].look()
    quorum[1].be(Unattached(3, election_deadline=0.0))
    quorum[1].breaks("P18")


def test_p28_a_pre_vote_that_counts_as_a_vote(quorum: PretendedQuorum) -> None:
    quorum[2].be(Unattached(4, election_deadline=0.0))
    quorum[2].look()
    request = _vote_request(1, epoch=4, voter=2, is_pre_vote=True)
    quorum.properties.request_arrives(quorum[2], request)
    quorum[2].be(Unattached(4, election_deadline=0.0, voted=key_of(1)))
    quorum[2].breaks("P28")


def test_p15_a_vote_in_anothers_name(quorum: PretendedQuorum) -> None:
    quorum[2].store(5, voted=1)
    with broken("P15"):
        _answer(quorum, voter=3)


def test_p15_an_answer_to_another_cluster(quorum: PretendedQuorum) -> None:
    quorum[2].store(5, voted=1)
    with broken("P15"):
        _answer(quorum, cluster="AAAAAAAAAAAAAAAAAAAAAA")


def _add_voters(quorum: PretendedQuorum, node_id: int, voters: VoterSet) -> None:
    """Append a KRAFT_VOTERS record, and let the core take it in."""
    node = quorum[node_id]
    offset = node.own_log.log_end_offset
    record = ControlRecord(ControlRecordType.KRAFT_VOTERS, voters_record_of(voters))
    data = build_control_batch([record], base_offset=offset, epoch=1, timestamp_ms=0)
    node.own_log.local_log.append(data)
    node.own_core.shown_log.append(epoch=1, count=1)
    node.own_core.shown_history.add_voters(offset, voters)
    node.flush()


def test_p11_two_voters_at_once(led: PretendedQuorum) -> None:
    _add_voters(led, 1, voters_of((1, 2, 3)))
    led[1].look()
    _add_voters(led, 1, voters_of((1, 2, 3, 4, 5)))
    led[1].breaks("P11")


def test_p11_two_changes_under_way(led: PretendedQuorum) -> None:
    _add_voters(led, 1, voters_of((1, 2, 3)))
    _add_voters(led, 1, voters_of((1, 2, 3, 4)))
    led[1].look()
    _add_voters(led, 1, voters_of((1, 2, 3, 4, 5)))
    led[1].breaks("P11")


def test_p12_voters_that_the_log_does_not_say(led: PretendedQuorum) -> None:
    _add_voters(led, 1, voters_of((1, 2, 3)))
    led[1].own_core.shown_history = VoterSetHistory(static=voters_of((1, 2)))
    led[1].breaks("P12")


def test_p14_a_removed_voter_comes_back_by_itself() -> None:
    quorum = _quorum_that_removed_3()
    with broken("P14"):
        _commit_voters(quorum, (1, 2, 3))


def test_p14_a_removed_voter_may_be_asked_back() -> None:
    quorum = _quorum_that_removed_3()
    quorum.properties.operator_asked_to_add(3, directory_id(3))
    _commit_voters(quorum, (1, 2, 3))
    assert quorum.count("P14") >= 3


def test_p14_a_removed_voter_may_be_asked_back_by_a_leader_who_knows_of_the_removal_first() -> None:
    quorum = PretendedQuorum()
    quorum.led_by(1)
    _commit_voters(quorum, (1, 2, 3))
    quorum.properties.voters.asked_to_remove(key_of(3))
    quorum.properties.voters.asked_to_add(key_of(3), at_offset=quorum[1].own_log.log_end_offset + 1)
    _commit_voters(quorum, (1, 2))
    _commit_voters(quorum, (1, 2, 3))
    assert quorum.count("P14") >= 3


def test_p14_a_removal_takes_an_earlier_request_back(led: PretendedQuorum) -> None:
    _commit_voters(led, (1, 2, 3))
    led.properties.voters.asked_to_remove(key_of(3))
    led.properties.voters.asked_to_add(key_of(3))
    _commit_voters(led, (1, 2))
    with broken("P14"):
        _commit_voters(led, (1, 2, 3))


def test_p33_a_voter_goes_unasked(led: PretendedQuorum) -> None:
    _commit_voters(led, (1, 2, 3))
    with broken("P33"):
        _commit_voters(led, (1, 2))


def test_p33_a_voter_comes_unasked(led: PretendedQuorum) -> None:
    _commit_voters(led, (1, 2))
    with broken("P33"):
        _commit_voters(led, (1, 2, 3))


def _commit_voters(quorum: PretendedQuorum, ids: tuple[int, ...]) -> None:
    for node_id in (1, 2, 3):
        _add_voters(quorum, node_id, voters_of(ids))
        quorum[node_id].look()
    quorum[1].commit(quorum[1].own_log.log_end_offset)
    quorum[1].look()


def _quorum_that_removed_3() -> PretendedQuorum:
    quorum = PretendedQuorum()
    quorum.led_by(1)
    quorum.properties.voters.asked_to_remove(key_of(3))
    _commit_voters(quorum, (1, 2, 3))
    _commit_voters(quorum, (1, 2))
    return quorum


def test_p19_work_in_a_thread_that_changes_the_core(quorum: PretendedQuorum) -> None:
    before = quorum.properties.before_thread_piece(quorum[1])
    quorum.properties.after_thread_piece(quorum[1], before)
    quorum[1].commit(1)
    with broken("P19"):
        quorum.properties.after_thread_piece(quorum[1], before)


def test_p20_a_node_that_a_message_has_stopped(quorum: PretendedQuorum) -> None:
    with broken("P20"):
        quorum.properties.node_failed(quorum[1], ValueError("what is this?"))


def test_p20_an_error_that_does_not_fit(quorum: PretendedQuorum) -> None:
    quorum[2].store(5)
    with broken("P20"):
        _answer(quorum, error=core.Error.VOTER_NOT_FOUND)


def test_p5_a_leader_without_what_is_committed(led: PretendedQuorum) -> None:
    for node_id in (1, 2):
        led[node_id].append(b"a")
        led[node_id].look()
    led[1].commit(2)
    led[1].look()
    led[3].lead(2, start=1)
    led[3].breaks("P5")


def test_p10_a_stored_batch_of_a_later_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].append(b"a", epoch=3)
    quorum[1].be(Unattached(2, election_deadline=0.0))
    quorum[1].breaks("P10")


def test_p15_a_leader_believed_on_behalf_of_another_directory(quorum: PretendedQuorum) -> None:
    quorum[2].store(5)
    asked = core.BeginQuorumEpochRequest(
        epoch=5, leader_id=1, voter=key_of(3), endpoints=(endpoint_of(1),)
    )
    answer = core.BeginQuorumEpochResponse(core.Error.NONE, core.KnownLeader(5, 1))
    with broken("P15"):
        quorum.properties.response_leaves(
            quorum[2],
            begin_quorum_epoch.write_request(asked, cluster_id=CLUSTER_ID),
            begin_quorum_epoch.write_answer(answer, version=1, listener_name="CONTROLLER"),
        )
