"""The errors of a replica where only the leader of an epoch may act."""

import pytest
from tests.unit.raft.driven_follower import EPOCH, LEADER_ID, DrivenFollower
from tests.unit.raft.driven_leader import LEADER, DrivenLeader

from kvorum.raft import NotLeaderError


def test_a_follower_names_its_leader_and_epoch() -> None:
    follower = DrivenFollower()
    text = "^Append failed because the replica is not the current leader$"
    with pytest.raises(NotLeaderError, match=text) as refused:
        follower.core.propose(follower.now, epoch=EPOCH, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER_ID, EPOCH)


def test_a_leader_of_another_epoch_names_its_own(leader: DrivenLeader) -> None:
    stale = leader.epoch - 1
    text = f"the given epoch {stale} is stale. Current leader epoch is {leader.epoch}"
    with pytest.raises(NotLeaderError, match=text) as refused:
        leader.core.propose(leader.now, epoch=stale, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER, leader.epoch)


def test_who_resigned_is_known_to_have_led(leader: DrivenLeader) -> None:
    epoch = leader.epoch
    leader.take(leader.core.resign(leader.now, epoch=epoch))
    with pytest.raises(NotLeaderError) as refused:
        leader.core.propose(leader.now, epoch=epoch, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER, epoch)
