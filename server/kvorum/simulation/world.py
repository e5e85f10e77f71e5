"""One world per seed: nodes, network, clients and faults, all determined by the seed.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; no code reads a real clock.
"""

from functools import partial

from kvorum.simulation.client import Client
from kvorum.simulation.events import Events
from kvorum.simulation.fault_plan import draw_hidden_voters, draw_plan, in_order
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.injection import Injector
from kvorum.simulation.options import draw_options
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.stranger import Stranger
from kvorum.simulation.surroundings import Surroundings, random_for
from kvorum.wire.uuid_text import uuid_to_text

LOOK_MS = 100.0
"""The time between two checks of what must become true once nothing fails any more."""
DURATION_MS = 120_000
"""The time of a world, both phases together, unless the caller asks for another."""


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
        around.events.run_until(options.safety_ms)
        self._injector.heal()
        end_ms = options.safety_ms + options.liveness_ms
        while around.now_ms < end_ms:
            liveness.look(around.now_ms, self.quorum.running())
            around.events.run_until(min(around.now_ms + LOOK_MS, end_ms))
        liveness.end(around.now_ms, self.quorum.running())
        for node in self.quorum.nodes.values():
            if node.process is not None:
                application = node.process.application
                around.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )
        around.trace.say("the end")

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
