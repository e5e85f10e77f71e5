"""The calls of a node's state machine: P17, and their contents: P22."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvorum.node.raft.listener import CommittedBatch, InPieces, LoadedSnapshot, RaftListener
from kvorum.raft.roles import Leader
from kvorum.simulation.properties.catalogue import P17, P22
from kvorum.simulation.properties.checks import Checks
from kvorum.simulation.properties.clients import Ledger
from kvorum.simulation.properties.node_facts import NodeMemory


class AppliedRecords:
    """The values that state machines got for each offset: all must get the same ones."""

    def __init__(self, checks: Checks, ledger: Ledger) -> None:
        self._checks = checks
        self._ledger = ledger
        self._values: dict[int, tuple[int, tuple[bytes, ...]]] = {}

    def apply(self, name: str, batch: CommittedBatch) -> None:
        """Note a batch that a state machine has got."""
        mine = (batch.epoch, batch.values)
        first = self._values.setdefault(batch.base_offset, mine)
        text = f"{name} applies {mine} at {batch.base_offset}, another node {first}"
        self._checks.demand(P22, text, holds=first == mine)
        self._ledger.applied(name, batch)


def _ignore(_memory: NodeMemory, _offset: int) -> None:
    """Do nothing."""


def _nothing_read(_batches: Sequence[CommittedBatch]) -> None:
    """Do nothing."""


class MonitoredListener:
    """A listener between a replica and its state machine that checks every call."""

    def __init__(
        self,
        memory: NodeMemory,
        inner: RaftListener,
        *,
        checks: Checks,
        applied: AppliedRecords,
        on_learned: Callable[[NodeMemory, int], None] = _ignore,
        on_batches: Callable[[Sequence[CommittedBatch]], None] = _nothing_read,
    ) -> None:
        self._on_batches = on_batches
        self._on_learned = on_learned
        self._memory = memory
        self._inner = inner
        self._checks = checks
        self._applied = applied
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
            self._applied.apply(self._memory.name, batch)
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
