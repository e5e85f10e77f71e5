"""One world per seed: nodes, network, clients and faults, and nothing that the seed does not say.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; nothing looks at a real clock.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zlib import crc32

from kvorum.node.outbound.client_connection import NobodyListensError
from kvorum.raft import VoterSet
from kvorum.raft.roles import Leader
from kvorum.simulation.clients import Client
from kvorum.simulation.events import Events
from kvorum.simulation.faults import Fault, draw_plan
from kvorum.simulation.injection import Injector
from kvorum.simulation.network import Network
from kvorum.simulation.node import Part, SimulatedNode, host_of
from kvorum.simulation.options import QuorumKind, draw_options
from kvorum.simulation.properties.watch import Properties
from kvorum.simulation.strangers import Stranger
from kvorum.simulation.trace import Trace
from kvorum.simulation.transport import Reply
from kvorum.wire.uuid_text import uuid_to_text

LOOK_MS = 100.0
DURATION_MS = 120_000


class World:
    """A quorum and everything that happens to it. `plan` takes the place of the drawn faults."""

    def __init__(
        self,
        seed: int,
        *,
        duration_ms: int = DURATION_MS,
        plan: tuple[Fault, ...] | None = None,
        is_trace_kept: bool = False,
    ) -> None:
        self.seed = seed
        self.events = Events()
        self.trace = Trace(lambda: self.events.now_ms, is_kept=is_trace_kept)
        self.fired: dict[str, int] = {}
        self.options = draw_options(self.random_for("options"), duration_ms=duration_ms)
        self.cluster_id = uuid_to_text(self.random_for("cluster").randbytes(16))
        self.properties = Properties(
            self.random_for("properties"), now_ms=lambda: self.events.now_ms
        )
        self.network = Network(self.events, self.random_for("network"), note=self.count)
        self.nodes = self._make_nodes()
        self._by_host = {node.host: node for node in self.nodes.values()}
        self.plan = plan if plan is not None else draw_plan(self.random_for("plan"), self.options)
        self.injector = Injector(self)
        self.clients = [Client(self, -1 - index) for index in range(self.options.client_count)]
        self.stranger = Stranger(self)
        self.is_safety_phase = True

    def _make_nodes(self) -> dict[int, SimulatedNode]:
        options = self.options
        parts = [Part.VOTER] * options.voter_count + [Part.SPARE] * options.spare_count
        parts += [Part.OBSERVER] * options.observer_count
        return {
            index + 1: SimulatedNode(
                self, node_id=index + 1, part=part, release=options.releases[index]
            )
            for index, part in enumerate(parts)
        }

    @property
    def now_ms(self) -> float:
        """The world's time since its beginning."""
        return self.events.now_ms

    def random_for(self, name: str) -> Random:
        """Return a generator of its own for a part of the world."""
        return Random(f"{self.seed}/{name}")  # noqa: S311 - to be repeatable is its use

    def count(self, kind: str) -> None:
        """Note that a fault has struck."""
        self.fired[kind] = self.fired.get(kind, 0) + 1

    def node_at(self, host: str) -> SimulatedNode:
        """Return the node at an address."""
        return self._by_host[host]

    # --- the run ---

    def run(self) -> None:
        """Live through both phases. Raises PropertyViolatedError."""
        options = self.options
        self.trace.say(f"seed {self.seed}: {options.told()}")
        self._begin()
        self.run_until(options.safety_ms)
        self._heal()
        end_ms = options.safety_ms + options.liveness_ms
        while self.now_ms < end_ms:
            self.properties.liveness.look(self.now_ms, self.running())
            self.run_until(min(self.now_ms + LOOK_MS, end_ms))
        self.properties.liveness.end(self.running())
        self._check_states()
        self.trace.say("the end")

    def run_until(self, until_ms: float) -> None:
        """Let everything happen that happens by then."""
        take_next = self.events.take_next
        while (callback := take_next(until_ms)) is not None:
            callback()

    def _begin(self) -> None:
        if self.options.kind is QuorumKind.DYNAMIC:
            voters = [node for node in self.nodes.values() if node.part is Part.VOTER]
            first = VoterSet.of(node.as_voter() for node in voters)
            for node in voters:
                node.format(first)
        if len(set(self.options.releases)) > 1:
            self.count("F19")
        start = self.random_for("start")
        for node in self.nodes.values():
            self.events.after(start.random() * 500, node.start)
        for client in self.clients:
            client.begin()
        self.stranger.begin()
        for fault in self.plan:
            self._plan_fault(fault)

    def _plan_fault(self, fault: Fault) -> None:
        self.events.at(fault.at_ms, lambda: self.injector.strike(fault))

    def _heal(self) -> None:
        """Let faults stop, and everything run again that may."""
        self.is_safety_phase = False
        self.trace.say("all faults stop")
        self.network.calm()
        self.injector.heal()
        self.properties.liveness.begin(self.now_ms, self.running())

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

    def _check_states(self) -> None:
        """Look at every state machine once more, whole."""
        for node in self.nodes.values():
            if node.process is not None:
                application = node.process.application
                self.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )

    # --- the network ---

    def carry_request(
        self, sender: int, host: str, frame: bytes, reply: Callable[[Reply], None]
    ) -> None:
        """Carry a request to the node at an address, and back what that says."""
        target = self._by_host[host]
        receiver = target.node_id
        self.trace.mix(f"{sender}>{receiver}", b"%d" % crc32(frame))

        def respond(said: Reply) -> None:
            if isinstance(said, bytes):
                self.trace.mix(f"{receiver}>{sender}", b"%d" % crc32(said))
            self.network.carry(receiver, sender, lambda: reply(said))

        def arrive() -> None:
            if target.process is not None:
                target.take_request(frame, respond)
            elif target.is_host_up:
                respond(NobodyListensError(f"nobody listens at {host}"))

        self.network.carry(sender, receiver, arrive)

    def tell_process_ended(self, ended: SimulatedNode) -> None:
        """Let everybody who is connected to a process hear that it has ended."""
        for node in self.nodes.values():
            if node is not ended:
                self._tell_ended(ended, node)

    def _tell_ended(self, ended: SimulatedNode, other: SimulatedNode) -> None:
        def arrive() -> None:
            process = other.process
            if process is not None and ended.process is None:
                process.turn(lambda: process.links.peer_ended(ended.host))

        self.network.carry(ended.node_id, other.node_id, arrive)

    def reset(self, one: SimulatedNode, other: SimulatedNode) -> None:
        """Break all connections between two nodes."""
        for here, there in ((one, other), (other, one)):
            process = here.process
            if process is not None:
                self._reset_links(here, there)

    def _reset_links(self, here: SimulatedNode, there: SimulatedNode) -> None:
        process = here.process
        if process is not None:
            process.turn(lambda: process.links.reset(host_of(there.node_id)))
