"""The nodes of a world and the transport between them."""

from collections.abc import Callable, Mapping
from functools import partial

from kvorum.metadata.image import MetadataImage
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.raft import VoterSet
from kvorum.raft.roles import Leader
from kvorum.simulation.network import OnReply, Reply
from kvorum.simulation.node import Part, SimulatedNode
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.requests import decoded_answer, request_frame
from kvorum.simulation.surroundings import Surroundings
from kvorum.simulation.versions import Release
from kvorum.wire.primitives import Message


class SimulatedQuorum:
    """All nodes, running or not; each node reaches the others through the quorum."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.is_safety_phase = True
        """Whether faults may still strike."""
        self.removals: set[int] = set()
        """The voters whose removal an operator has asked for, and not heard of yet."""
        self.nodes: Mapping[int, SimulatedNode] = self._make_nodes()
        self._by_host = {node.host: node for node in self.nodes.values()}

    def _make_nodes(self) -> dict[int, SimulatedNode]:
        options = self.around.options
        parts = [Part.VOTER] * options.voter_count + [Part.SPARE] * options.spare_count
        parts += [Part.OBSERVER] * options.observer_count + [Part.BROKER] * options.broker_count
        return {
            index + 1: SimulatedNode(
                self.around,
                neighbours=self,
                node_id=index + 1,
                part=part,
                release=options.releases[index],
            )
            for index, part in enumerate(parts)
        }

    def format(self) -> None:
        """Format the directories of the first voters, where the log has the voters."""
        if self.around.options.kind is QuorumKind.DYNAMIC:
            voters = [node for node in self.nodes.values() if node.part is Part.VOTER]
            first = VoterSet.of(node.as_voter() for node in voters)
            for node in voters:
                node.format(first)

    def without_brokers(self) -> list[SimulatedNode]:
        """Return the nodes that are not ended by what ends a broker."""
        return [node for node in self.nodes.values() if node.part is not Part.BROKER]

    def brokers(self) -> list[SimulatedNode]:
        """Return the observers that begin and end with their brokers."""
        return [node for node in self.nodes.values() if node.part is Part.BROKER]

    @property
    def controller_ids(self) -> list[int]:
        """The ids of all controllers."""
        return [node.node_id for node in self.nodes.values() if node.can_vote]

    @property
    def committed_image(self) -> MetadataImage:
        """The metadata that is committed."""
        return self.around.committed.image

    @property
    def pending_image(self) -> MetadataImage:
        """The metadata with what the leader has proposed; where none leads, what is committed."""
        leader = self.leader()
        process = None if leader is None else leader.process
        pending = None if process is None else process.controller.pending
        return self.committed_image if pending is None else pending

    def release_of(self, host: str) -> Release:
        """Return the release to whose requests the node at an address is limited."""
        return self._by_host[host].release

    def id_of(self, host: str) -> int:
        """Return the id of the node at an address."""
        return self._by_host[host].node_id

    def running(self) -> list[SimulatedNode]:
        """Return the nodes that may run, in order of their ids."""
        return [node for node in self.nodes.values() if not node.is_barred]

    def leader(self) -> SimulatedNode | None:
        """Return the running leader of the highest epoch."""
        leading = [
            node
            for node in self.nodes.values()
            if node.core is not None and isinstance(node.core.role, Leader)
        ]
        return max(
            leading, key=lambda node: 0 if node.core is None else node.core.role.epoch, default=None
        )

    # --- the ways between nodes ---

    def carry_request(self, sender: int, host: str, frame: bytes, reply: OnReply) -> None:
        """Carry a request to the node at an address, and its response back."""
        target = self._by_host[host]
        self.around.network.request(
            sender, target.node_id, frame, serve=target.take_request, reply=reply
        )

    def ask(
        self,
        sender: int,
        asked: SimulatedNode,
        request: Message,
        take: Callable[[Message | ClientConnectionError], None],
        *,
        version: int,
    ) -> None:
        """Send a request to a node; `take` gets the response, if one comes."""

        def decode(said: Reply) -> None:
            take(decoded_answer(request, version, said) if isinstance(said, bytes) else said)

        self.carry_request(sender, asked.host, request_frame(request, version), decode)

    def process_ended(self, node_id: int) -> None:
        """Notify every node that is connected to a process that the process has ended."""
        ended = self.nodes[node_id]
        for node in self.nodes.values():
            if node is not ended:
                self._note_ended(ended, node)

    def _note_ended(self, ended: SimulatedNode, other: SimulatedNode) -> None:
        def arrive() -> None:
            process = other.process
            if process is not None and ended.process is None:
                process.turn(lambda: process.links.peer_ended(ended.host))

        self.around.network.carry(ended.node_id, other.node_id, arrive)

    def reset(self, one: SimulatedNode, other: SimulatedNode) -> None:
        """Break all connections between two nodes."""
        for here, there in ((one, other), (other, one)):
            process = here.process
            if process is not None:
                process.turn(partial(process.links.reset, there.host))
