"""The ledger of the records that clients have read or got acknowledged, and its checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions.replica_log import Entry, ReplicaLog


class BrokenPromiseError(Exception):
    """A claim does not hold; `claim` is its text."""

    def __init__(self, claim: str, told: str) -> None:
        super().__init__(f"{claim}: {told}")
        self.claim = claim


class Ledger:
    """The records that a consumer could read, and those that were acknowledged to writers."""

    def __init__(self, partitions: int) -> None:
        self._exposed: list[list[Entry]] = [[] for _ in range(partitions)]
        self._acknowledged: list[dict[int, int]] = [{} for _ in range(partitions)]
        self._epochs = [-1] * partitions
        self.counts: Counter[str] = Counter()

    def on_lead(self, index: int, log: ReplicaLog, *, leader_epoch: int, broker_id: int) -> None:
        """Check that a broker which begins to lead has every record that could be read."""
        if leader_epoch <= self._epochs[index]:
            return
        self._epochs[index] = leader_epoch
        self.counts["leaders"] += 1
        exposed = self._exposed[index]
        if log.entries[: len(exposed)] != exposed:
            self._fail("a new leader has everything that was committed", index, broker_id, log)

    def on_high_watermark(
        self, index: int, log: ReplicaLog, *, before: int, broker_id: int
    ) -> None:
        """Note the records that can be read from now on, and check those readable before."""
        exposed = self._exposed[index]
        if log.high_watermark > log.end_offset:
            self._fail("the high watermark is within the log", index, broker_id, log)
        if log.high_watermark < before:
            self._fail("a leader's high watermark never falls", index, broker_id, log)
        for offset in range(before, log.high_watermark):
            if offset == len(exposed):
                exposed.append(log.entries[offset])
                self.counts["committed records"] += 1
            elif exposed[offset] != log.entries[offset]:
                self._fail("nobody reads two records at one offset", index, broker_id, log)

    def acknowledge(self, index: int, offset: int, value: int) -> None:
        """Note that a record was acknowledged to its writer."""
        self._acknowledged[index][offset] = value
        self.counts["acknowledged records"] += 1
        exposed = self._exposed[index]
        if offset >= len(exposed) or exposed[offset].value != value:
            told = f"partition {index}, offset {offset}"
            raise BrokenPromiseError("what is acknowledged is committed", told)

    def on_change(self, before: PartitionRegistration, after: PartitionRegistration) -> None:
        """Check a committed change of a partition."""
        told = f"{before} became {after}"
        if after.has_leader and after.leader not in after.isr:
            raise BrokenPromiseError("the leader is in the ISR", told)
        if not set(after.isr) <= set(after.replicas) or set(after.isr) & set(after.elr):
            raise BrokenPromiseError("the ISR is among the replicas and not eligible", told)
        if after.partition_epoch != before.partition_epoch + 1:
            raise BrokenPromiseError("every change raises the partition epoch by one", told)
        if after.leader != before.leader and after.leader_epoch != before.leader_epoch + 1:
            raise BrokenPromiseError("a new leader has a new epoch", told)
        self.counts["ISR changes"] += after.isr != before.isr

    def check_end(self, index: int, logs: Sequence[ReplicaLog]) -> None:
        """Check, after faults and writes have ended, that all replicas have every record."""
        told = f"partition {index}, ends at {[log.end_offset for log in logs]}"
        for log in logs:
            for offset, value in self._acknowledged[index].items():
                if offset >= log.end_offset or log.entries[offset].value != value:
                    raise BrokenPromiseError("no acknowledged record is lost", told)
            if log.entries != logs[0].entries:
                raise BrokenPromiseError("in peace all replicas are the same", told)
            if log.high_watermark != log.end_offset:
                raise BrokenPromiseError("in peace everything is committed", told)

    def _fail(self, claim: str, index: int, broker_id: int, log: ReplicaLog) -> None:
        raise BrokenPromiseError(
            claim,
            f"partition {index} of broker {broker_id}: end {log.end_offset}, high watermark "
            f"{log.high_watermark}; committed {len(self._exposed[index])}",
        )
