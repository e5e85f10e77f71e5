"""One world per seed: nodes, network, clients and faults, all determined by the seed.

Every part draws from a generator of its own, named after it, so that leaving one fault out does not
change what the others draw. Time moves from event to event; no code reads a real clock.
"""

from functools import partial

from kvorum.simulation.events import Event, Events
from kvorum.simulation.faults import Fault, FaultKind, draw_plan
from kvorum.simulation.injection import Injector
from kvorum.simulation.options import (
    BIG_BYTES_MAX,
    BIG_SHARE,
    CALM_THINK_MS_MAX,
    SMALL_BYTES_MAX,
    draw_options,
)
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.strangers import Stranger
from kvorum.simulation.surroundings import Surroundings, random_for
from kvorum.wire.uuid_text import uuid_to_text

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
        share = min(self._random.expovariate(1.0), THINKING_MAX)
        delay_ms = share * self._around.options.think_ms
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
        self.plan = draw_plan(around.random_for("plan"), around.options) if plan is None else plan
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
        self._check_states()
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

    def _check_states(self) -> None:
        """Check every state machine once more as a whole."""
        for node in self.quorum.nodes.values():
            if node.process is not None:
                application = node.process.application
                self.around.properties.ledger.check_state(
                    f"node {node.node_id}", application.values, application.next_offset
                )
