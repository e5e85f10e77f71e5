"""One world per seed: nodes, network, clients and faults, all determined by the seed.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; no code reads a real clock.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.simulation.clients import Client
from kvorum.simulation.events import Events
from kvorum.simulation.faults import Fault, FaultKind, draw_plan
from kvorum.simulation.injection import Injector
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import Options, draw_options
from kvorum.simulation.properties.watch import Properties
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.strangers import Stranger
from kvorum.simulation.surroundings import Surroundings, random_for
from kvorum.simulation.trace import Trace
from kvorum.wire.uuid_text import uuid_to_text

LOOK_MS = 100.0
DURATION_MS = 120_000


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
        self._around = around = Surroundings.of(
            seed,
            draw_options(random_for(seed, "options"), duration_ms=duration_ms),
            uuid_to_text(random_for(seed, "cluster").randbytes(16)),
            events=Events(),
            is_trace_kept=is_trace_kept,
        )
        self.quorum = SimulatedQuorum(around)
        self.plan = draw_plan(around.random_for("plan"), around.options) if plan is None else plan
        self._injector = Injector(self.quorum)
        self._clients = [
            Client(self.quorum, -1 - index) for index in range(around.options.client_count)
        ]
        self._stranger = Stranger(self.quorum)

    @property
    def nodes(self) -> Mapping[int, SimulatedNode]:
        """All nodes by their ids."""
        return self.quorum.nodes

    @property
    def options(self) -> Options:
        """The options of the world."""
        return self._around.options

    @property
    def cluster_id(self) -> str:
        """The id of the cluster to which all nodes belong."""
        return self._around.cluster_id

    @property
    def properties(self) -> Properties:
        """The properties that are checked."""
        return self._around.properties

    @property
    def trace(self) -> Trace:
        """The trace of the run."""
        return self._around.trace

    @property
    def fired(self) -> Mapping[FaultKind, int]:
        """The number of times that each kind of fault has struck."""
        return self._around.faults.counts

    @property
    def now_ms(self) -> float:
        """The world's time since its beginning."""
        return self._around.now_ms

    # --- the run ---

    def run(self) -> None:
        """Run both phases; raise PropertyViolatedError."""
        options = self.options
        self.trace.say(f"seed {self._around.seed}: {options.describe()}")
        self._begin()
        self.run_until(options.safety_ms)
        self._injector.heal()
        end_ms = options.safety_ms + options.liveness_ms
        while self.now_ms < end_ms:
            self.properties.liveness.look(self.now_ms, self.quorum.running())
            self.run_until(min(self.now_ms + LOOK_MS, end_ms))
        self.properties.liveness.end(self.now_ms, self.quorum.running())
        self._check_states()
        self.trace.say("the end")

    def run_until(self, until_ms: float) -> None:
        """Run all events up to a time."""
        take_next = self._around.events.take_next
        while (callback := take_next(until_ms)) is not None:
            callback()

    def _begin(self) -> None:
        self.quorum.format()
        if len(set(self.options.releases)) > 1:
            self._around.count(FaultKind.UPGRADE)
        start = self._around.random_for("start")
        for node in self.nodes.values():
            self._around.events.after(start.random() * 500, node.start)
        for client in self._clients:
            client.begin()
        self._stranger.begin()
        for fault in self.plan:
            self._plan_fault(fault)

    def _plan_fault(self, fault: Fault) -> None:
        self._around.events.at(fault.at_ms, lambda: self._injector.strike(fault))

    def _check_states(self) -> None:
        """Check every state machine once more as a whole."""
        for node in self.nodes.values():
            if node.process is not None:
                application = node.process.application
                self.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )
