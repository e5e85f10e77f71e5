"""The calls of a node's state machine, their contents, and clients' writes: P17, P22, P25."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvorum.node.raft.listener import CommittedBatch, InPieces, LoadedSnapshot, RaftListener
from kvorum.raft.roles import Leader
from kvorum.simulation.properties.catalogue import P17, P22, P25, Checks
from kvorum.simulation.properties.node_facts import NodeMemory


@dataclass(slots=True)
class _Write:
    """One write, by its value, which is unique."""

    invoked_at_ms: float
    offset: int | None = None


class Ledger:
    """All writes that were begun, those that were acknowledged, and what state machines got.

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
        # The epoch and the values that state machines got for each base offset.
        self._batches: dict[int, tuple[int, tuple[bytes, ...]]] = {}
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
        seen = self._value_at.get(offset)
        text = f"{value!r} is acknowledged at {offset}, where {seen!r} is applied"
        self._checks.demand(P25, text, holds=seen in {None, value})
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

    def applied(self, name: str, batch: CommittedBatch) -> None:
        """Check a batch that a state machine got.

        All get the same values, no value twice, and acknowledged ones in place.
        """
        mine = (batch.epoch, batch.values)
        other = self._batches.setdefault(batch.base_offset, mine)
        text = f"{name} applies {mine} at {batch.base_offset}, another node {other}"
        self._checks.demand(P22, text, holds=other == mine)
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


class MonitoredListener:
    """A listener between a replica and its state machine that checks every call."""

    def __init__(
        self,
        memory: NodeMemory,
        inner: RaftListener,
        *,
        checks: Checks,
        ledger: Ledger,
        on_learned: Callable[[NodeMemory, int], None],
        on_batches: Callable[[Sequence[CommittedBatch]], None],
    ) -> None:
        self._on_batches = on_batches
        self._on_learned = on_learned
        self._memory = memory
        self._inner = inner
        self._checks = checks
        self._ledger = ledger
        self._next_offset = 0
        self._has_heard = False
        self._leading_epoch: int | None = None
        self._last_epoch_led = -1
        self._last_epoch_heard = -1

    def _demand(self, text: str, *, holds: bool) -> None:
        self._checks.demand(P17, f"{self._memory.name}: {text}", holds=holds)

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces | None:
        """Check that a snapshot does not move the state machine backwards."""
        end = snapshot.end_offset
        self._demand(
            f"a snapshot to {end} comes after {self._next_offset}", holds=end >= self._next_offset
        )
        self._demand("a snapshot comes to a leader", holds=self._leading_epoch is None)
        self._next_offset, self._has_heard = end, True
        return self._inner.on_snapshot(snapshot)

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces | None:
        """Check that batches continue the earlier ones, and are committed."""
        for batch in batches:
            text = f"offset {batch.base_offset} comes where {self._next_offset} is next"
            is_first = not self._has_heard and batch.base_offset == 0
            self._demand(text, holds=is_first or batch.base_offset == self._next_offset)
            self._next_offset, self._has_heard = batch.last_offset + 1, True
            self._ledger.applied(self._memory.name, batch)
        self._on_batches(batches)
        self._on_learned(self._memory, self._next_offset)
        return self._inner.on_commit(batches)

    def on_leadership_gained(self, epoch: int) -> None:
        """Check that the call comes once, in time, and behind everything before its epoch."""
        self._demand(
            f"leads {epoch} while it leads {self._leading_epoch}", holds=self._leading_epoch is None
        )
        self._demand(
            f"leads {epoch} after {self._last_epoch_led}", holds=epoch > self._last_epoch_led
        )
        core = self._memory.node.core
        if core is not None and isinstance(core.role, Leader) and core.role.epoch == epoch:
            start = core.role.epoch_start_offset
            self._demand(
                f"leads {epoch} from {start} on and was told up to {self._next_offset}",
                holds=self._next_offset > start,
            )
        self._leading_epoch = self._last_epoch_led = epoch
        self._inner.on_leadership_gained(epoch)

    def on_leadership_lost(self, epoch: int) -> None:
        """Check that the lost leadership was gained before."""
        self._demand(
            f"loses {epoch} while it leads {self._leading_epoch}",
            holds=self._leading_epoch == epoch,
        )
        self._leading_epoch = None
        self._inner.on_leadership_lost(epoch)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Check that epochs do not go back."""
        self._demand(
            f"hears of epoch {epoch} after {self._last_epoch_heard}",
            holds=epoch >= self._last_epoch_heard,
        )
        self._last_epoch_heard = epoch
        self._inner.on_leader_change(leader_id, epoch)

    def on_failure(self, error: Exception) -> None:
        """Pass the failure on."""
        self._inner.on_failure(error)
