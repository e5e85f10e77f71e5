"""A sender of requests that no node should get: for another node, directory or cluster."""

from collections.abc import Callable

from kvorum.node.raft.translation import begin_quorum_epoch, end_quorum_epoch, fetch, vote
from kvorum.raft import ReplicaKey
from kvorum.raft import messages as core
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.versions import common_version
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

_PAUSE_MS_MEAN = 4_000.0
_SENDER = -100
"""The id of the stranger in the network: no node and no client has it."""


class Stranger:
    """A sender of misdirected requests to random nodes, as long as faults strike.

    Such requests come from misconfigured nodes, from former members and from attackers. None of
    them may change anything, and each gets its error.
    """

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._quorum = quorum
        self._around = quorum.around
        self._random = quorum.around.random_for("stranger")
        self._correlation_id = 0
        self._kinds: tuple[Callable[[SimulatedNode], Message], ...] = (
            self._vote_for_another_node,
            self._vote_for_another_directory,
            self._vote_in_another_cluster,
            self._begin_for_another_directory,
            self._end_in_another_cluster,
            self._fetch_in_another_cluster,
        )

    def begin(self) -> None:
        """Send the next request after a random pause."""
        self._around.events.after(self._random.expovariate(1.0) * _PAUSE_MS_MEAN, self._ask)

    def _ask(self) -> None:
        quorum, random = self._quorum, self._random
        if not quorum.is_safety_phase:
            return
        node = random.choice(list(quorum.nodes.values()))
        message = random.choice(self._kinds)(node)
        version = common_version(type(message), node.release, node.release)
        # The first version of some requests does not name the receiver.
        if version > 0:
            self._correlation_id += 1
            frame = encode_request_frame(
                message, version=version, correlation_id=self._correlation_id, client_id="stranger"
            )
            # The properties have checked the response already.
            self._around.network.carry(
                _SENDER, node.node_id, lambda: node.take_request(frame, lambda _said: None)
            )
        self.begin()

    def _epoch(self, node: SimulatedNode) -> int:
        """Return the node's epoch, or the one below it."""
        epoch = 0 if node.core is None else node.core.role.epoch
        return max(epoch - self._random.randrange(2), 0)

    def _other_cluster(self) -> str:
        return uuid_to_text(self._random.randbytes(16))

    def _candidate(self) -> ReplicaKey:
        return self._random.choice(list(self._quorum.nodes.values())).key

    def _vote(self, node: SimulatedNode, voter: ReplicaKey, cluster_id: str) -> Message:
        asked = core.VoteRequest(
            epoch=self._epoch(node),
            replica=self._candidate(),
            voter=voter,
            log_end=OffsetAndEpoch(1_000_000, self._epoch(node)),
            is_pre_vote=False,
        )
        return vote.write_request(asked, cluster_id=cluster_id)

    def _vote_for_another_node(self, node: SimulatedNode) -> Message:
        voter = ReplicaKey(node.node_id + 1, node.directory_id)
        return self._vote(node, voter, self._around.cluster_id)

    def _vote_for_another_directory(self, node: SimulatedNode) -> Message:
        voter = ReplicaKey(node.node_id, self._random.randbytes(16))
        return self._vote(node, voter, self._around.cluster_id)

    def _vote_in_another_cluster(self, node: SimulatedNode) -> Message:
        return self._vote(node, node.key, self._other_cluster())

    def _begin_for_another_directory(self, node: SimulatedNode) -> Message:
        """Name the true leader: a replica learns it, as Kafka's does, but refuses the request."""
        leader = self._quorum.leader()
        epoch = None
        if leader is not None and leader.process is not None:
            epoch = leader.process.application.leading_epoch
        if leader is None or epoch is None:
            return self._vote_for_another_node(node)
        asked = core.BeginQuorumEpochRequest(
            epoch=epoch,
            leader_id=leader.node_id,
            voter=ReplicaKey(node.node_id, self._random.randbytes(16)),
            endpoints=leader.as_voter().endpoints,
        )
        return begin_quorum_epoch.write_request(asked, cluster_id=self._around.cluster_id)

    def _end_in_another_cluster(self, node: SimulatedNode) -> Message:
        asked = core.EndQuorumEpochRequest(
            epoch=self._epoch(node),
            leader_id=self._candidate().id,
            preferred=(node.key,),
            endpoints=node.as_voter().endpoints,
        )
        version = common_version(EndQuorumEpochRequest, node.release, node.release)
        return end_quorum_epoch.write_request(
            asked, cluster_id=self._other_cluster(), version=version
        )

    def _fetch_in_another_cluster(self, node: SimulatedNode) -> Message:
        asked = core.FetchRequest(
            replica=self._candidate(),
            epoch=self._epoch(node),
            position=OffsetAndEpoch(1_000_000, self._epoch(node)),
            max_wait_ms=500,
            bytes_max=1_000,
            high_watermark=None,
        )
        version = common_version(FetchRequest, node.release, node.release)
        return fetch.write_request(asked, cluster_id=self._other_cluster(), version=version)
