"""The controllers of a world of brokers: a simulated quorum, of which every broker is an observer.

Its nodes run the library's raft and controller on disks of their own, under the faults of the
quorum's worlds, in a shorter time; but no voter is hidden. Brokers and clients are on its network.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, TypeAlias

from kvorum.controller.api import ControllerResult, Pieces, at_once
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import decode_record
from kvorum.raft.config import RaftConfig
from kvorum.simulation.application import FIRST_IMAGE
from kvorum.simulation.events import Events
from kvorum.simulation.fault_plan import draw_plan
from kvorum.simulation.faults import Fault
from kvorum.simulation.injection import Injector
from kvorum.simulation.network import Conditions, OnReply, Route
from kvorum.simulation.node import Part, SimulatedNode
from kvorum.simulation.operator import OPERATOR_ID
from kvorum.simulation.options import Options, QuorumKind, draw_options
from kvorum.simulation.partitions.settings import (
    CLUSTER_ID,
    FAULTS_FROM_MS,
    PEACE_FROM_MS,
    SESSION_MS,
)
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.requests import OnAnswer, Requests
from kvorum.simulation.surroundings import Surroundings, random_for
from kvorum.simulation.versions import Release
from kvorum.wire.primitives import Message

PeriodicTask: TypeAlias = Callable[
    [MetadataImage, ControllerRequestContext], Pieces[ControllerResult[bool]]
]
_PLANNED_MS: Final = 60_000
"""The time for which faults are planned; they strike in a tenth of it."""
_OPERATOR_WAITS_MS: Final = 260
_FAULTS_KEPT: Final = 0.25
"""With all of them there would be no active controller most of the time."""


class ControllerQuorum:
    """The nodes of the quorum, and what they have committed.

    `on_commit` is called with each record once, in order, when the first node applies it.
    `conditions` returns the usual ones of a path with so many controllers at its ends. Methods
    raise PropertyViolatedError.
    """

    def __init__(
        self,
        seed: int,
        *,
        broker_count: int,
        events: Events,
        on_commit: Callable[[Message], None],
        is_trace_kept: bool,
        conditions: Callable[[int], Conditions],
    ) -> None:
        options = _draw_options(random_for(seed, "options"), broker_count)
        self.controller_ids = ids = range(1, options.voter_count + options.spare_count + 1)

        def usual(route: Route) -> Conditions:
            return conditions(sum(one in ids for one in route))

        self._around = around = Surroundings.of(
            seed,
            options,
            CLUSTER_ID,
            events=events,
            is_trace_kept=is_trace_kept,
            usual=usual,
            on_record=self._on_record,
        )
        self.faults, self.trace = around.faults, around.trace
        self.requests = Requests(around.network, events)
        self._random = around.random_for("controllers")
        self._quorum = SimulatedQuorum(around)
        self._injector = Injector(self._quorum)
        random = around.random_for("plan")
        self._plan = [
            fault
            for fault in _hastened(draw_plan(random, options))
            if random.random() < _FAULTS_KEPT
        ]
        self._on_commit = on_commit
        self._applied_end = 0
        self.committed_image = FIRST_IMAGE

    @property
    def broker_nodes(self) -> list[SimulatedNode]:
        """The observers, which begin and end with their brokers."""
        return [node for node in self._quorum.nodes.values() if node.part is Part.BROKER]

    @property
    def checks(self) -> Mapping[str, int]:
        """The number of times that each property of the quorum held, by its id."""
        return self._around.properties.checks.counts

    # --- the run ---

    def begin(self) -> None:
        """Start the controllers, and plan their faults."""
        self._quorum.format()
        for node in self._quorum.without_brokers():
            node.start()
        for fault in self._plan:
            self._around.events.at(fault.at_ms, partial(self._injector.strike, fault))

    def heal(self) -> None:
        """Stop all faults, and start every controller that may run."""
        self._injector.heal()

    def look(self) -> None:
        """Check that a healed quorum goes on; to be called about every tenth of a second."""
        self._around.properties.liveness.look(self._around.now_ms, self._quorum.running())

    def end(self) -> None:
        """Check the quorum at the end."""
        self._around.properties.liveness.end(self._around.now_ms, self._quorum.running())

    # --- the controllers ---

    def serve(self, node_id: int, frame: bytes, reply: OnReply) -> None:
        """Have a request handled that has arrived at a controller."""
        self._quorum.nodes[node_id].take_request(frame, reply)

    def ask_leader(self, request: Message, on_answer: OnAnswer) -> None:
        """Send a request of an operator to the leader; the answer is None where none comes."""
        leader = self._quorum.leader()
        if leader is None:
            on_answer(None)
            return
        link = OPERATOR_ID, leader.node_id
        self.requests.ask(
            link, request, leader.take_request, on_answer, timeout_ms=_OPERATOR_WAITS_MS
        )

    def run(self, task: PeriodicTask) -> None:
        """Let every controller that is active, or believes so, do what it does unasked."""

        def decide(
            image: MetadataImage, context: ControllerRequestContext
        ) -> ControllerResult[Message | None]:
            result = at_once(task(image, context))
            return ControllerResult(None, result.records, result.is_atomic)

        for node in self._quorum.without_brokers():
            process = node.process
            if process is not None:
                process.turn(partial(process.controller.run, decide, lambda _: None))

    @property
    def pending_image(self) -> MetadataImage:
        """The metadata with what the leader has proposed."""
        leader = self._quorum.leader()
        process = None if leader is None else leader.process
        pending = None if process is None else process.controller.pending
        return pending or self.committed_image

    def _on_record(self, offset: int, value: bytes) -> None:
        if offset < self._applied_end:
            return
        self._applied_end = offset + 1
        message, version = decode_record(value)
        self.committed_image = self.committed_image.apply(message, version, offset)
        self._on_commit(message)

    # --- faults ---

    def fail_over(self, duration_ms: float) -> None:
        """Strike the leader, so that another controller takes its place."""
        leader = self._quorum.leader()
        if leader is None or leader.process is None:
            return
        process, after = leader.process, self._around.events.after
        match self._random.choice(("kill", "power", "pause", "resign", "cut")):
            case "kill" | "power" as how:
                leader.crash_and_restart(is_power_cut=how == "power", restart_ms=duration_ms)
            case "pause":
                # It goes on in the belief that it leads.
                leader.pause()
                after(duration_ms, leader.resume)
            case "resign":
                process.turn(process.resign)
            case _:
                self.cut_off(leader.node_id, self.controller_ids, duration_ms)

    def cut_off(self, node_id: int, others: Iterable[int], duration_ms: float) -> None:
        """Cut a node off from some others for a while."""
        other_ids = [one for one in others if one != node_id]
        self._injector.network.separate([node_id], other_ids, duration_ms)


def _draw_options(random: Random, broker_count: int) -> Options:
    """Draw a small quorum with short timeouts."""
    drawn = draw_options(random, duration_ms=_PLANNED_MS)
    voter_count = random.choice((1, 3, 3, 3))
    spare_count = random.choice((0, 1)) if drawn.kind is QuorumKind.DYNAMIC else 0
    count = voter_count + spare_count
    releases = tuple(drawn.releases[index % len(drawn.releases)] for index in range(count))
    raft = RaftConfig(
        fetch_snapshot_bytes_max=random.choice((4_096, 1024 * 1024)),
        election_timeout_ms=random.choice((100, 200, 300)),
        election_backoff_ms_max=random.choice((50, 200)),
        fetch_timeout_ms=random.choice((300, 600, 1_000)),
        request_timeout_ms=random.choice((300, 600)),
        fetch_bytes_max=random.choice((1_000, 4_096, 1024 * 1024)),
        fetch_wait_ms_max=100,
        shutdown_timeout_ms=500,
    )
    return replace(
        drawn,
        voter_count=voter_count,
        spare_count=spare_count,
        observer_count=0,
        broker_count=broker_count,
        releases=(*releases, *[Release.LATEST] * broker_count),
        raft=raft,
        snapshot_every=random.choice((40, 100, 400)),
        session_timeout_ms=SESSION_MS,
        client_count=0,
        safety_ms=_PLANNED_MS,
    )


def _hastened(plan: tuple[Fault, ...]) -> list[Fault]:
    """Return the faults with the times of a world of brokers."""
    share = (PEACE_FROM_MS - FAULTS_FROM_MS) / _PLANNED_MS
    return [
        replace(
            fault,
            at_ms=FAULTS_FROM_MS + int(fault.at_ms * share),
            duration_ms=int(fault.duration_ms * share) + 1,
        )
        for fault in plan
    ]
