"""Clients that write values one after the other, and remember what they were promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvorum.simulation.events import Event
    from kvorum.simulation.world import World

PATIENCE_MS = 4_000.0
RETRY_MS = 150.0
THINKING_MAX = 3.0
"""Nobody waits longer than so many times the average."""
CALM_THINK_MS_MAX = 1_000.0
"""How long clients wait at the most once faults have stopped: that writes go on has to show."""
_BIG_SHARE = 0.25
_BIG_BYTES_MAX = 12_000
"""Big enough that a power cut can tear a write, at pages of 4 KiB too."""


class Client:
    """One client; ids are negative. It asks whom it takes for the leader, else anybody."""

    def __init__(self, world: World, client_id: int) -> None:
        self._world = world
        self._id = client_id
        self._random = world.random_for(f"client/{client_id}")
        self._number = 0
        self._attempt = 0
        self._believed_leader: int | None = None
        self._value = b""
        self._patience: Event | None = None

    def begin(self) -> None:
        """Write for as long as the world lasts."""
        self._think()

    def _think(self) -> None:
        share = min(self._random.expovariate(1.0), THINKING_MAX)
        delay_ms = share * self._world.options.think_ms
        if not self._world.is_safety_phase:
            delay_ms = min(delay_ms, CALM_THINK_MS_MAX)
        self._world.events.after(delay_ms, self._write)

    def _write(self) -> None:
        """Begin with a new value, which nobody writes twice."""
        self._number += 1
        is_big = self._random.random() < _BIG_SHARE
        size = self._random.randrange(_BIG_BYTES_MAX) if is_big else self._random.randrange(40)
        self._value = b"client %d write %d %s" % (-self._id, self._number, b"." * size)
        self._world.properties.ledger.invoked(self._value, self._world.now_ms)
        self._try()

    def _try(self) -> None:
        world = self._world
        self._attempt += 1
        attempt, value = self._attempt, self._value
        target = self._believed_leader
        if target is None:
            target = self._random.choice(list(world.nodes))
        node = world.nodes[target]
        self._patience = world.events.after(PATIENCE_MS, lambda: self._give_up(attempt))

        def answer(offset: int | None, leader_id: int | None, *, is_refused: bool) -> None:
            world.network.carry(
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
                    answer(None, process.driver.core.role.leader_id, is_refused=True)

            process.turn(propose)

        world.network.carry(self._id, node.node_id, arrive)

    def _take(
        self, attempt: int, offset: int | None, leader_id: int | None, *, is_refused: bool
    ) -> None:
        """Take an answer: where it was written, that nobody knows, or that it was not taken."""
        if attempt != self._attempt:
            return
        self._stop_waiting()
        if is_refused:
            self._believed_leader = leader_id
            self._world.events.after(RETRY_MS, self._try)
            return
        if offset is not None:
            self._world.properties.ledger.acknowledged(self._value, offset, self._world.now_ms)
        self._think()

    def _give_up(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._stop_waiting()
            self._believed_leader = None
            self._think()

    def _stop_waiting(self) -> None:
        # Whatever comes for this attempt from now on is too late.
        self._attempt += 1
        if self._patience is not None:
            self._patience.cancel()
