"""The writes of simulated clients: P25, on every state machine and between clients."""

from __future__ import annotations

from kvorum.node.raft.listener import CommittedBatch
from kvorum.simulation.properties.catalogue import P25
from kvorum.simulation.properties.checks import Checks


class _Write:
    """One write, by its value, which is unique."""

    __slots__ = ("invoked_at_ms", "offset")

    def __init__(self, invoked_at_ms: float) -> None:
        self.invoked_at_ms = invoked_at_ms
        self.offset: int | None = None


class Ledger:
    """All writes that were begun, those that were acknowledged, and their offsets.

    A value that was acknowledged at an offset must be there on every node, once, and writes that
    follow each other in time must follow each other in the log: then the history is linearizable,
    with the order of the log as the order of the operations.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._writes: dict[bytes, _Write] = {}
        self._acknowledged: dict[int, bytes] = {}
        # The offsets where state machines saw each value.
        self._applied: dict[bytes, int] = {}
        self._value_at: dict[int, bytes] = {}
        self._highest_acknowledged: list[tuple[float, int]] = []

    @property
    def acknowledged_count(self) -> int:
        """The number of writes that were acknowledged."""
        return len(self._acknowledged)

    def invoked(self, value: bytes, now_ms: float) -> None:
        """Note that a client begins to write a new value."""
        text = f"{value!r} is written twice by the clients themselves"
        self._checks.demand(P25, text, holds=value not in self._writes)
        self._writes[value] = _Write(now_ms)

    def acknowledged(self, value: bytes, offset: int, now_ms: float) -> None:
        """Note that a value was acknowledged to its client as committed at an offset."""
        write = self._writes[value]
        other = self._acknowledged.setdefault(offset, value)
        text = f"{value!r} and {other!r} are both acknowledged at {offset}"
        self._checks.demand(P25, text, holds=other == value)
        text = f"{value!r} is acknowledged at {write.offset} and at {offset}"
        self._checks.demand(P25, text, holds=write.offset in {None, offset})
        write.offset = offset
        self._check_place(value, offset)
        self._check_order(value, write, offset)
        highest = self._highest_acknowledged
        highest.append((now_ms, max(offset, highest[-1][1] if highest else -1)))

    def _check_order(self, value: bytes, write: _Write, offset: int) -> None:
        """Demand an offset above those acknowledged before this write began."""
        before = -1
        for at_ms, highest in reversed(self._highest_acknowledged):
            if at_ms < write.invoked_at_ms:
                before = highest
                break
        text = f"{value!r} is at {offset}, and {before} was acknowledged before it was written"
        self._checks.demand(P25, text, holds=offset > before)

    def _check_place(self, value: bytes, offset: int) -> None:
        """Demand that every state machine that has reached the offset got this value."""
        seen = self._value_at.get(offset)
        text = f"{value!r} is acknowledged at {offset}, where {seen!r} is applied"
        self._checks.demand(P25, text, holds=seen in {None, value})

    def applied(self, name: str, batch: CommittedBatch) -> None:
        """Check a batch that a state machine got: no value twice, acknowledged ones in place."""
        for index, value in enumerate(batch.values):
            offset = batch.base_offset + index
            promised = self._acknowledged.get(offset)
            text = f"{name} applies {value!r} at {offset}, where {promised!r} is acknowledged"
            self._checks.demand(P25, text, holds=promised in {None, value})
            if value not in self._writes:
                continue
            first = self._applied.setdefault(value, offset)
            text = f"{name} applies {value!r} at {offset}, it is at {first} too"
            self._checks.demand(P25, text, holds=first == offset)
            self._value_at[offset] = value

    def check_state(self, name: str, values: dict[int, bytes], next_offset: int) -> None:
        """Demand that a state machine has all acknowledged values below its next offset."""
        for offset, value in self._acknowledged.items():
            if offset < next_offset:
                text = f"{name} has {values.get(offset)!r} at {offset} and not {value!r}"
                self._checks.demand(P25, text, holds=values.get(offset) == value)
