"""Requests of the quorum's own protocol, as a good peer makes them, and spoilt one by one."""

from dataclasses import dataclass, replace
from typing import Any

from tests.support.node import CLUSTER_ID, Node
from tests.support.quorum.proxied_quorum import ProxiedQuorum

from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.vote import VoteRequest

# Fields, each named by the way to it; a value that is a function is asked, with what it is about.
Spoilt = dict[str, object]
TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
BYTES_MAX = 1024 * 1024


def spoil(message: Any, spoilt: Spoilt, about: object) -> None:
    for path, value in spoilt.items():
        *steps, last = path.split(".")
        target = message
        for step in steps:
            target = target[int(step)] if step.isdigit() else getattr(target, step)
        setattr(target, last, value(about) if callable(value) else value)


def name_of(spoilt: Spoilt, *, without: str) -> str:
    """Return what is spoilt in a few words, for the name of a test."""
    return ", ".join(f"{path.removeprefix(without)}={_word(what)}" for path, what in spoilt.items())


def _word(what: object) -> str:
    if isinstance(what, bytes):
        return f"{len(what)} times {what[:1].hex()}"
    return getattr(what, "__name__", str(what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The receiver, the apparent sender, and the state."""

    asked: Node
    asking: Node
    leader: Node
    leader_port: int
    epoch: int
    end_offset: int

    def asked_instead(self, asked: Node) -> "Setting":
        """Return the same with another node to be asked."""
        return replace(self, asked=asked)

    def vote(self) -> VoteRequest:
        """Return a request for a vote in the epoch after this."""
        partition = VoteRequest.PartitionData(
            replica_epoch=self.epoch + 1,
            replica_id=self.asking.node_id,
            replica_directory_id=self.asking.directory_id,
            voter_directory_id=self.asked.directory_id,
            last_offset_epoch=self.epoch,
            last_offset=self.end_offset,
        )
        topic = VoteRequest.TopicData(TOPIC, [partition])
        return VoteRequest(CLUSTER_ID, self.asked.node_id, [topic])

    def begin(self) -> BeginQuorumEpochRequest:
        """Return word from the leader that it leads."""
        partition = BeginQuorumEpochRequest.PartitionData(
            voter_directory_id=self.asked.directory_id,
            leader_id=self.leader.node_id,
            leader_epoch=self.epoch,
        )
        endpoint = BeginQuorumEpochRequest.LeaderEndpoint(
            "CONTROLLER", "127.0.0.1", self.leader_port
        )
        topic = BeginQuorumEpochRequest.TopicData(TOPIC, [partition])
        return BeginQuorumEpochRequest(CLUSTER_ID, self.asked.node_id, [topic], [endpoint])

    def end(self) -> EndQuorumEpochRequest:
        """Return word from the leader that it leads no more."""
        partition = EndQuorumEpochRequest.PartitionData(
            leader_id=self.leader.node_id, leader_epoch=self.epoch
        )
        topic = EndQuorumEpochRequest.TopicData(TOPIC, [partition])
        return EndQuorumEpochRequest(CLUSTER_ID, [topic])

    def fetch(self) -> FetchRequest:
        """Return a fetch of a replica that has everything."""
        partition = FetchRequest.FetchPartition(
            current_leader_epoch=self.epoch,
            fetch_offset=self.end_offset,
            last_fetched_epoch=self.epoch,
            replica_directory_id=self.asking.directory_id,
        )
        topic = FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])
        state = FetchRequest.ReplicaState(self.asking.node_id)
        return FetchRequest(CLUSTER_ID, replica_state=state, max_bytes=BYTES_MAX, topics=[topic])

    def fetch_snapshot(self) -> FetchSnapshotRequest:
        """Return a request for a snapshot that no node has."""
        partition = FetchSnapshotRequest.PartitionSnapshot(
            current_leader_epoch=self.epoch,
            snapshot_id=FetchSnapshotRequest.SnapshotId(self.end_offset + 1, self.epoch),
            replica_directory_id=self.asking.directory_id,
        )
        topic = FetchSnapshotRequest.TopicSnapshot(TOPIC, [partition])
        return FetchSnapshotRequest(CLUSTER_ID, self.asking.node_id, BYTES_MAX, [topic])


def now_in(quorum: ProxiedQuorum, *, asks_leader: bool) -> Setting:
    """Return how things stand once all logs are the same; a follower is the one who asks."""
    end_offset = quorum.wait_until_settled()
    answer = quorum.described()
    assert answer is not None
    leader = quorum.members[answer.leader_id]
    followers = [one for one in quorum.members.values() if one is not leader]
    asked, asking = (leader, followers[0]) if asks_leader else (followers[0], followers[1])
    return Setting(
        asked=asked,
        asking=asking,
        leader=leader,
        leader_port=quorum.network.ports[leader.node_id],
        epoch=answer.leader_epoch,
        end_offset=end_offset,
    )
