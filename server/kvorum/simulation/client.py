"""A client of a simulated quorum: it writes unique values, one after the other."""

from kvorum.simulation.events import Event
from kvorum.simulation.options import BIG_BYTES_MAX, BIG_SHARE, CALM_THINK_MS_MAX, SMALL_BYTES_MAX
from kvorum.simulation.quorum import SimulatedQuorum

PATIENCE_MS = 4_000.0
"""The time that a client waits for an answer, before it asks another node."""
RETRY_MS = 150.0
"""The time from a refusal to the next attempt."""
THINKING_MAX = 3.0
"""The longest wait of a client before its next write, in multiples of the average."""


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
