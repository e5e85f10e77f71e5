"""The operator, which changes the voters, upgrades kraft.version and asks leaders to resign."""

from collections.abc import Callable
from random import Random

from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.node.raft.errors import RaftNodeError
from kvorum.raft import KRaftVersionUpgradeError, NotLeaderError, ReplicaKey, VoterSet
from kvorum.simulation.budget import may_become
from kvorum.simulation.fault_ratios import RATIOS
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.versions import Release, common_version
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

OPERATOR_ID = -100
_TIMEOUT_MS = 30_000


class Operator:
    """An operator that asks the leader, as a person would, and only notes the outcome."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self._quorum = quorum
        self._around = quorum.around

    def upgrade(self, fault: Fault, random: Random) -> None:
        """Upgrade kraft.version; try again as long as that is refused."""
        leader = self._quorum.leader()
        if not self._quorum.is_safety_phase:
            return
        if (
            leader is None
            or leader.process is None
            or leader.process.application.leading_epoch is None
        ):
            self._around.events.after(2_000.0, lambda: self.upgrade(fault, random))
            return
        leader.process.turn(lambda: self._upgrade(leader, fault, random))

    def _upgrade(self, leader: SimulatedNode, fault: Fault, random: Random) -> None:
        process = leader.process
        if process is None:
            return
        around = self._around
        try:
            is_new = process.client.upgrade_kraft_version(1, epoch=process.client.epoch)
        except (KRaftVersionUpgradeError, NotLeaderError, RaftNodeError) as error:
            around.trace.say(f"{leader.node_id} refuses kraft.version 1: {error}")
            around.events.after(5_000.0, lambda: self.upgrade(fault, random))
            return
        if is_new:
            around.faults[FaultKind.UPGRADE] += 1
            around.trace.say(f"{leader.node_id} goes to kraft.version 1")

    def change_voters(self, fault: Fault, random: Random) -> bool:
        """Ask the leader to resign, or add or remove a voter where that is safe.

        Returns whether a change of the voters was asked for.
        """
        quorum = self._quorum
        leader = quorum.leader()
        if leader is None or leader.process is None or not quorum.is_safety_phase:
            return False
        if random.random() < RATIOS.resignation:
            self._resign(leader)
            return False
        if leader.process.client.kraft_version < 1:
            return False
        wanted = self._choose(leader.voters, random)
        if wanted is None:
            return False
        self._around.faults[FaultKind.CHANGED_VOTERS] += 1
        target, verb = wanted
        verb(self._asked(leader, fault, random), target, random)
        return True

    def remove_voter(self, target: ReplicaKey, fault: Fault, random: Random) -> None:
        """Ask for the removal of a voter, where that is safe."""
        quorum = self._quorum
        leader = quorum.leader()
        if leader is None or not quorum.is_safety_phase:
            return
        if leader.voters.names(target) and may_become(quorum, leader.voters.without(target.id)):
            self._around.faults[FaultKind.CHANGED_VOTERS] += 1
            self._remove(self._asked(leader, fault, random), target, random)

    def _asked(self, leader: SimulatedNode, fault: Fault, random: Random) -> SimulatedNode:
        """Return the node that is asked for a change: mostly the leader."""
        nodes = list(self._quorum.nodes.values())
        is_leader = random.random() < RATIOS.operator_asks_leader
        return leader if is_leader else nodes[fault.first % len(nodes)]

    def _resign(self, leader: SimulatedNode) -> None:
        process = leader.process
        if process is not None:
            self._around.trace.say(f"{leader.node_id} is asked to resign")
            process.turn(process.resign)

    def _choose(
        self, voters: VoterSet, random: Random
    ) -> tuple[ReplicaKey, Callable[[SimulatedNode, ReplicaKey, Random], None]] | None:
        """Choose a voter to remove or to add; a voter whose disk is gone comes first."""
        quorum = self._quorum
        gone = [
            voter.key
            for voter in voters.voters
            if voter.key.id in quorum.nodes and not voter.is_replica(quorum.nodes[voter.key.id].key)
        ]
        if gone:
            return random.choice(gone), self._remove
        new = [
            node.key
            for node in quorum.nodes.values()
            if node.can_vote
            and not (node.is_barred or node.is_damaged)
            and voters.by_id(node.node_id) is None
        ]
        old = [
            voter.key for voter in voters.voters if may_become(quorum, voters.without(voter.key.id))
        ]
        if new and (not old or random.random() < RATIOS.voter_is_added):
            return random.choice(new), self._add
        return (random.choice(old), self._remove) if old else None

    def _add(self, asked: SimulatedNode, target: ReplicaKey, random: Random) -> None:
        around = self._around
        node = self._quorum.nodes[target.id]
        around.trace.say(f"operator asks {asked.node_id} to add voter {target.id}")
        around.properties.operator_asked_to_add(node.node_id, node.directory_id)
        request = AddRaftVoterRequest(
            cluster_id=around.cluster_id,
            timeout_ms=_TIMEOUT_MS,
            voter_id=target.id,
            voter_directory_id=node.directory_id,
            listeners=[AddRaftVoterRequest.Listener("CONTROLLER", node.host, 9093)],
        )
        version = common_version(AddRaftVoterRequest, Release.LATEST, asked.release)
        if version >= 1:
            request.ack_when_committed = random.random() < RATIOS.answer_when_committed
        self._ask(asked, request, version=version)

    def _remove(self, asked: SimulatedNode, target: ReplicaKey, random: Random) -> None:
        del random
        self._around.trace.say(f"operator asks {asked.node_id} to remove voter {target.id}")
        request = RemoveRaftVoterRequest(
            cluster_id=self._around.cluster_id,
            voter_id=target.id,
            voter_directory_id=target.directory_id or bytes(16),
        )
        self._quorum.removals.add(target.id)
        self._ask(asked, request, version=0)

    def _ask(self, asked: SimulatedNode, request: Message, *, version: int) -> None:
        def take(answer: Message | ClientConnectionError) -> None:
            text = str(answer)
            if isinstance(answer, AddRaftVoterResponse | RemoveRaftVoterResponse):
                text = f"error {answer.error_code} {answer.error_message or ''}".rstrip()
            self._around.trace.say(f"operator hears from {asked.node_id}: {text}")
            if isinstance(request, RemoveRaftVoterRequest):
                self._quorum.removals.discard(request.voter_id)

        self._quorum.ask(OPERATOR_ID, asked, request, take, version=version)
