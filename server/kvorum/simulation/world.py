"""One world per seed: a quorum, what inhabits it, and what fails, all determined by the seed.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; no code reads a real clock.
"""

from functools import partial

from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.injection import Injector
from kvorum.simulation.makeup import WorldKind, draw_makeup
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.surroundings import Surroundings

LOOK_MS = 100.0
"""The time between two checks of what must become true once nothing fails any more."""
DURATION_MS = 120_000
"""The time of a world without brokers, both phases together, unless the caller asks for another."""


class World:
    """A quorum with its inhabitants and its faults. `plan` takes the place of the drawn faults.

    A world with brokers has a duration of its own. Its plan has the quorum's faults alone: those of
    brokers are drawn while it runs.
    """

    def __init__(
        self,
        seed: int,
        *,
        kind: WorldKind = WorldKind.QUORUM,
        duration_ms: int = DURATION_MS,
        plan: tuple[Fault, ...] | None = None,
        is_trace_kept: bool = False,
    ) -> None:
        makeup = draw_makeup(seed, kind, duration_ms=duration_ms)
        self.around = Surroundings.of(
            seed,
            makeup.options,
            makeup.cluster_id,
            usual=makeup.usual,
            is_trace_kept=is_trace_kept,
        )
        self.quorum = SimulatedQuorum(self.around)
        self.plan = makeup.plan if plan is None else plan
        self._injector = Injector(self.quorum)
        self.inhabitants = makeup.inhabit(self.quorum)

    # --- the run ---

    def run(self) -> None:
        """Run both phases; raise PropertyViolatedError."""
        options = self.around.options
        self._begin()
        self.around.events.run_until(options.safety_ms)
        self._injector.heal()
        self._watch_quorum(options.safety_ms + options.liveness_ms)
        self.inhabitants.check_end()

    def _begin(self) -> None:
        around = self.around
        self.quorum.format()
        if len(set(around.options.releases)) > 1:
            around.faults[FaultKind.UPGRADE] += 1
        self._start_controllers()
        for fault in self.plan:
            around.events.at(fault.at_ms, partial(self._injector.strike, fault))
        self.inhabitants.begin()

    def _start_controllers(self) -> None:
        """Start the nodes that do not begin with their brokers."""
        around = self.around
        within_ms = around.options.starts_within_ms
        start = around.random_for("start")
        for node in self.quorum.without_brokers():
            if within_ms:
                around.events.after(start.random() * within_ms, node.start)
            else:
                node.start()

    def _watch_quorum(self, end_ms: float) -> None:
        """Let the phase without faults pass; check again and again that the quorum goes on."""
        around = self.around
        liveness = around.properties.liveness
        first_look_ms = self.inhabitants.settle()
        around.events.run_until(around.now_ms + first_look_ms)
        while around.now_ms < end_ms:
            liveness.look(around.now_ms, self.quorum.running())
            around.events.run_until(min(around.now_ms + LOOK_MS, end_ms))
        liveness.end(around.now_ms, self.quorum.running())
