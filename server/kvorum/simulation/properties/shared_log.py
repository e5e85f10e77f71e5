"""The log that all nodes together have written: P4, P5, P13, P24, and its committed part.

Every batch that any disk has ever held is known by its base offset and epoch. Where two disks hold
a batch with the same base offset and epoch, it must be the same batch, and the batches before it
must be the same too. By induction the logs then agree on everything before it.
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from kvorum.simulation.properties.catalogue import P4, P5, P13, P24, Checks
from kvorum.simulation.properties.log_scan import ScannedBatch
from kvorum.simulation.properties.node_facts import NodeMemory


class _KnownBatch(NamedTuple):
    """A batch that some disk held; `before` is base offset and epoch of the batch before it."""

    last_offset: int
    crc: int
    before: tuple[int, int] | None


class CommittedBatch(NamedTuple):
    """A batch below some node's high watermark."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: int


class SharedLog:
    """All batches that were ever written, and the committed ones."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._known: dict[tuple[int, int], _KnownBatch] = {}
        self._epoch_bases: dict[int, int] = {}
        self.committed: list[CommittedBatch] = []
        self._committed_bases: list[int] = []
        # The epoch of the first node known to have it committed; it never falls along the log.
        self._committed_in: list[int] = []

    @property
    def committed_end(self) -> int:
        """The offset below which everything is known to be committed."""
        return self.committed[-1].last_offset + 1 if self.committed else 0

    def is_known(self, *, base_offset: int, epoch: int, last_offset: int, crc: int) -> bool:
        """Return whether exactly this batch was on some disk."""
        known = self._known.get((base_offset, epoch))
        return known is not None and known[:2] == (last_offset, crc)

    def take_in(self, memory: NodeMemory, changed_from: int) -> None:
        """Check the batches of a node's log from an offset on: P4 and P13."""
        memory.verified_offset = min(memory.verified_offset, changed_from)
        scan = memory.scan
        before = scan.batch_holding(changed_from - 1) if changed_from > scan.start_offset else None
        for batch in scan.batches_from(changed_from):
            self._check_neighbour(memory, before, batch)
            self._compare(memory, before, batch)
            before = batch
        self._checks.held(P4, P13)

    def learn(self, memory: NodeMemory, marks: Mapping[str, int]) -> None:
        """Note the batches that a node with a damaged log has appended behind `marks`.

        A new batch is recognized by its position in its file: its offset may be damaged.
        """
        for batch in memory.scan.batches_behind(marks):
            known = _KnownBatch(batch.last_offset, batch.crc, None)
            self._known.setdefault((batch.base_offset, batch.epoch), known)

    def _check_neighbour(
        self, memory: NodeMemory, before: ScannedBatch | None, batch: ScannedBatch
    ) -> None:
        if before is None:
            return
        is_next = batch.base_offset == before.last_offset + 1 and batch.epoch >= before.epoch
        if not is_next:
            text = f"{memory.name} has {_text(batch)} behind {_text(before)}"
            self._checks.demand(P13, text, holds=False)

    def _compare(
        self, memory: NodeMemory, before: ScannedBatch | None, batch: ScannedBatch
    ) -> None:
        key = (batch.base_offset, batch.epoch)
        place = None if before is None else (before.base_offset, before.epoch)
        mine = _KnownBatch(batch.last_offset, batch.crc, place)
        known = self._known.get(key)
        if known is None or (known.before is None and known[:2] == mine[:2]):
            self._known[key] = mine
        elif known[:2] != mine[:2] or (place is not None and known.before != place):
            text = f"{memory.name} has {_text(batch)} as {mine}, another node as {known}"
            self._checks.demand(P4, text, holds=False)
        if before is not None and before.epoch < batch.epoch:
            base = self._epoch_bases.setdefault(batch.epoch, batch.base_offset)
            if base != batch.base_offset:
                text = f"epoch {batch.epoch} begins at {base} and, on {memory.name}, at {key[0]}"
                self._checks.demand(P4, text, holds=False)

    def commit(self, memory: NodeMemory, high_watermark: int) -> None:
        """Note a node's committed batches, and compare them with those of other nodes: P24."""
        if high_watermark > self.committed_end:
            self._extend(memory, high_watermark)
        self._verify(memory, min(high_watermark, self.committed_end))

    def _extend(self, memory: NodeMemory, high_watermark: int) -> None:
        core = memory.node.core
        epoch = memory.election.epoch if core is None else core.role.epoch
        known = self._committed_in[-1] if self._committed_in else 0
        for batch in memory.scan.batches_from(self.committed_end):
            if batch.last_offset >= high_watermark or batch.base_offset != self.committed_end:
                break
            self.committed.append(CommittedBatch(*batch[:4]))
            self._committed_bases.append(batch.base_offset)
            self._committed_in.append(max(epoch, known))

    def _verify(self, memory: NodeMemory, end: int) -> None:
        """Compare a node's log with the committed batches, from the last compared offset on."""
        start = max(memory.verified_offset, memory.scan.start_offset)
        index = bisect_left(self._committed_bases, start)
        for batch in memory.scan.batches_from(start):
            if batch.last_offset >= end:
                break
            if batch.base_offset < start:
                continue
            if index >= len(self.committed) or self.committed[index] != batch[:4]:
                expected = self.committed[index] if index < len(self.committed) else None
                text = f"{memory.name} has {_text(batch)} where {expected} is committed"
                self._checks.demand(P24, text, holds=False)
            index += 1
            memory.verified_offset = batch.last_offset + 1
        self._checks.held(P24)

    def check_leader(self, memory: NodeMemory) -> None:
        """Demand that a new leader's log holds everything committed in epochs before its own: P5.

        A leader whose votes arrive late may begin to lead when a later epoch already commits.
        """
        core = memory.node.core
        epoch = 0 if core is None else core.role.epoch
        index = bisect_left(self._committed_in, epoch) - 1
        if index < 0 or memory.is_log_damaged:
            return
        last = self.committed[index]
        scan = memory.scan
        if scan.start_offset > last.base_offset:
            self._checks.held(P5)
            return
        found = scan.batch_holding(last.base_offset)
        text = f"{memory.name} leads and has {found} where {last} is committed"
        self._checks.demand(P5, text, holds=found is not None and found[:4] == last)

    def is_boundary(self, offset: int) -> bool:
        """Return whether a committed batch ends right before `offset`."""
        index = bisect_left(self._committed_bases, offset) - 1
        return offset == 0 or (index >= 0 and self.committed[index].last_offset == offset - 1)

    def epoch_before(self, offset: int) -> int | None:
        """Return the epoch of the committed record before `offset`."""
        index = bisect_left(self._committed_bases, offset) - 1
        return self.committed[index].epoch if index >= 0 else None


def _text(batch: ScannedBatch) -> str:
    return f"offsets {batch.base_offset} to {batch.last_offset} of epoch {batch.epoch}"
