"""The figures of a replica in its states, under the names that Kafka gives them."""

from tests.unit.raft.core_builder import CONFIG, key_of
from tests.unit.raft.driven_leader import CAN_ALL, DrivenLeader
from tests.unit.raft.reporting_follower import RECORDED, STATIC, ReportingFollower

ONLY_LEADERS = {
    "duplicate-voter-ids",
    "number-of-observers",
    "number-of-offline-voters",
    "pending-add-voter",
    "pending-remove-voter",
    "uncommitted-voter-change",
}
ALWAYS = {
    "current-state",
    "current-leader",
    "current-vote",
    "current-vote-directory-id",
    "current-epoch",
    "high-watermark",
    "log-end-offset",
    "log-end-epoch",
    "number-unknown-voter-connections",
    "number-of-voters",
    "is-observer",
    "ignored-static-voters",
}


def test_a_leader_counts_voters_observers_and_changes(leader: DrivenLeader) -> None:
    named = leader.core.metrics(leader.now).named()
    assert set(named) == ALWAYS | ONLY_LEADERS
    assert named["current-state"] == "leader"
    assert (named["current-leader"], named["current-vote"]) == (1, 1)
    assert named["current-vote-directory-id"] == "AQEBAQEBAQEBAQEBAQEBAQ"
    assert named["high-watermark"] == named["log-end-offset"] == leader.log.end_offset
    assert named["log-end-epoch"] == named["current-epoch"] == leader.epoch
    assert (named["number-of-voters"], named["number-of-observers"]) == (3, 0)
    assert named["uncommitted-voter-change"] == 0
    leader.add(4)
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-observers"], named["uncommitted-voter-change"]) == (1, 1)
    assert (named["pending-add-voter"], named["pending-remove-voter"]) == (1, 0)
    leader.answer_probe(CAN_ALL)
    leader.commit()
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-voters"], named["number-of-observers"]) == (4, 0)
    assert named["uncommitted-voter-change"] == 0


def test_a_leader_on_its_way_out_is_an_observer(leader: DrivenLeader) -> None:
    leader.remove(1)
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-voters"], named["number-of-observers"]) == (2, 1)
    assert (named["pending-add-voter"], named["pending-remove-voter"]) == (0, 1)
    assert named["is-observer"] == 1
    leader.commit()
    named = leader.core.metrics(leader.now).named()
    assert named["current-state"] == "unattached"
    assert not ONLY_LEADERS & set(named)


def test_a_follower_is_a_voter_or_an_observer() -> None:
    assert ReportingFollower(RECORDED).core.metrics(0.0).named()["current-state"] == "follower"
    other = ReportingFollower(RECORDED, key=key_of(2, 99)).core.metrics(0.0).named()
    assert (other["current-state"], other["is-observer"]) == ("observer", 1)
    assert (other["current-vote"], other["current-leader"]) == (-1, 1)
    assert other["current-vote-directory-id"] == "AAAAAAAAAAAAAAAAAAAAAA"
    assert not ONLY_LEADERS & set(other)


def test_static_voters_are_ignored_once_the_log_names_some() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    assert one.core.metrics(0.0).named()["ignored-static-voters"] == 0
    one.append_voters(RECORDED)
    assert one.core.metrics(0.0).named()["ignored-static-voters"] == 1


def test_an_id_is_there_twice_once_a_node_with_another_directory_fetches() -> None:
    leader = DrivenLeader()
    leader.commit()
    assert leader.core.metrics(leader.now).named()["duplicate-voter-ids"] == 0
    leader.fetch(key_of(4), offset=0)
    assert leader.core.metrics(leader.now).named()["duplicate-voter-ids"] == 0
    leader.fetch(key_of(2, 99), offset=0)
    leader.fetch(key_of(2, 98), offset=0)
    named = leader.core.metrics(leader.now).named()
    assert (named["duplicate-voter-ids"], named["number-of-observers"]) == (1, 3)


def test_a_broker_is_not_an_observing_controller() -> None:
    broker = ReportingFollower(RECORDED, key=key_of(9), can_vote=False)
    assert broker.core.metrics(0.0).named()["is-observer"] == 0


def test_who_asks_for_votes_is_prospective(leader: DrivenLeader) -> None:
    leader.advance(CONFIG.check_quorum_ms)
    leader.advance(5 * CONFIG.election_timeout_ms)
    assert leader.core.metrics(leader.now).named()["current-state"] in {"prospective", "unattached"}


def test_a_voter_is_offline_once_it_has_not_fetched_for_the_fetch_timeout() -> None:
    leader = DrivenLeader()
    leader.commit()
    assert leader.core.metrics(leader.now).named()["number-of-offline-voters"] == 0
    later = leader.core.metrics(leader.now + CONFIG.fetch_timeout_ms + 1).named()
    assert later["number-of-offline-voters"] == 2
