"""One world per seed: nodes, network, clients and faults, all determined by the seed.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; no code reads a real clock.
"""

from collections.abc import Callable
from functools import partial

from kvorum.node.raft.translation import begin_quorum_epoch, end_quorum_epoch, fetch, vote
from kvorum.raft import ReplicaKey
from kvorum.raft import messages as core
from kvorum.simulation.events import Event, Events
from kvorum.simulation.faults import Fault, FaultKind, draw_hidden_voters, draw_plan, in_order
from kvorum.simulation.injection import Injector
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import (
    BIG_BYTES_MAX,
    BIG_SHARE,
    CALM_THINK_MS_MAX,
    SMALL_BYTES_MAX,
    draw_options,
)
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.surroundings import Surroundings, random_for
from kvorum.simulation.versions import common_version
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

_PAUSE_MS_MEAN = 4_000.0
_SENDER = -100


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


PATIENCE_MS = 4_000.0
RETRY_MS = 150.0
THINKING_MAX = 3.0
"""The longest wait of a client before its next write, in multiples of the average."""
LOOK_MS = 100.0
DURATION_MS = 120_000


class Client:
    """One client, with a negative id. It asks the leader that it knows of, else any node."""

    def __init__(self, quorum: SimulatedQuorum, client_id: int) -> None:
        self._quorum = quorum
        self._around = quorum.around
        self._id = client_id
        self._random = quorum.around.random_for(f"client/{client_id}")
        self._number = 0
        self._attempt = 0
        self._believed_leader: int | None = None
        self._value = b""
        self._patience: Event | None = None

    def begin(self) -> None:
        """Begin to write, for as long as the world lasts."""
        self._think()

    def _think(self) -> None:
        delay_ms = min(self._random.expovariate(1.0), THINKING_MAX) * self._around.options.think_ms
        if not self._quorum.is_safety_phase:
            delay_ms = min(delay_ms, CALM_THINK_MS_MAX)
        self._around.events.after(delay_ms, self._write)

    def _write(self) -> None:
        """Begin to write a new value; every value is unique."""
        self._number += 1
        is_big = self._random.random() < BIG_SHARE
        size = self._random.randrange(BIG_BYTES_MAX if is_big else SMALL_BYTES_MAX)
        self._value = b"client %d write %d %s" % (-self._id, self._number, b"." * size)
        self._around.properties.ledger.invoked(self._value, self._around.now_ms)
        self._try()

    def _try(self) -> None:
        around, quorum = self._around, self._quorum
        self._attempt += 1
        attempt, value = self._attempt, self._value
        target = self._believed_leader
        if target is None:
            target = self._random.choice(list(quorum.nodes))
        node = quorum.nodes[target]
        self._patience = around.events.after(PATIENCE_MS, lambda: self._give_up(attempt))

        def answer(offset: int | None, leader_id: int | None, *, is_refused: bool) -> None:
            around.network.carry(
                node.node_id,
                self._id,
                lambda: self._take(attempt, offset, leader_id, is_refused=is_refused),
            )

        def arrive() -> None:
            process = node.process
            if node.is_hidden:
                return
            if process is None:
                if node.is_host_up:
                    answer(None, None, is_refused=True)
                return

            def propose() -> None:
                if not process.propose(value, lambda at: answer(at, None, is_refused=False)):
                    answer(None, process.client.leader_id, is_refused=True)

            process.turn(propose)

        around.network.carry(self._id, node.node_id, arrive)

    def _take(
        self, attempt: int, offset: int | None, leader_id: int | None, *, is_refused: bool
    ) -> None:
        """Handle an answer: the value's offset, an unknown outcome, or a refusal."""
        if attempt != self._attempt:
            return
        self._stop_waiting()
        if is_refused:
            self._believed_leader = leader_id
            self._around.events.after(RETRY_MS, self._try)
            return
        if offset is not None:
            self._around.properties.ledger.acknowledged(self._value, offset, self._around.now_ms)
        self._think()

    def _give_up(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._stop_waiting()
            self._believed_leader = None
            self._think()

    def _stop_waiting(self) -> None:
        # An answer that comes for this attempt from now on is ignored.
        self._attempt += 1
        if self._patience is not None:
            self._patience.cancel()


def _drawn_plan(around: Surroundings) -> tuple[Fault, ...]:
    plan = draw_plan(around.random_for("plan"), around.options)
    hidden = draw_hidden_voters(around.random_for("hidden voters of a run"), around.options)
    return in_order((*plan, *hidden))


class World:
    """A quorum with its clients and faults. `plan` takes the place of the drawn faults."""

    def __init__(
        self,
        seed: int,
        *,
        duration_ms: int = DURATION_MS,
        plan: tuple[Fault, ...] | None = None,
        is_trace_kept: bool = False,
    ) -> None:
        self.around = around = Surroundings.of(
            seed,
            draw_options(random_for(seed, "options"), duration_ms=duration_ms),
            uuid_to_text(random_for(seed, "cluster").randbytes(16)),
            events=Events(),
            is_trace_kept=is_trace_kept,
        )
        self.quorum = SimulatedQuorum(around)
        self.plan = _drawn_plan(around) if plan is None else plan
        self._injector = Injector(self.quorum)
        self._clients = [
            Client(self.quorum, -1 - index) for index in range(around.options.client_count)
        ]
        self._stranger = Stranger(self.quorum)

    # --- the run ---

    def run(self) -> None:
        """Run both phases; raise PropertyViolatedError."""
        around = self.around
        options, liveness = around.options, around.properties.liveness
        around.trace.say(f"seed {around.seed}: {options.describe()}")
        self._begin()
        self.run_until(options.safety_ms)
        self._injector.heal()
        end_ms = options.safety_ms + options.liveness_ms
        while around.now_ms < end_ms:
            liveness.look(around.now_ms, self.quorum.running())
            self.run_until(min(around.now_ms + LOOK_MS, end_ms))
        liveness.end(around.now_ms, self.quorum.running())
        for node in self.quorum.nodes.values():
            if node.process is not None:
                application = node.process.application
                around.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )
        around.trace.say("the end")

    def run_until(self, until_ms: float) -> None:
        """Run all events up to a time."""
        take_next = self.around.events.take_next
        while (callback := take_next(until_ms)) is not None:
            callback()

    def _begin(self) -> None:
        around = self.around
        self.quorum.format()
        if len(set(around.options.releases)) > 1:
            around.faults[FaultKind.UPGRADE] += 1
        start = around.random_for("start")
        for node in self.quorum.nodes.values():
            around.events.after(start.random() * 500, node.start)
        for client in self._clients:
            client.begin()
        self._stranger.begin()
        for fault in self.plan:
            around.events.at(fault.at_ms, partial(self._injector.strike, fault))
