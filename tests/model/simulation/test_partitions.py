"""Brokers with the real replicas and their controller, in worlds drawn from a number each.

A few worlds run every time, some of them new ones; ``kvorum simulate`` runs more.
Mistakes are made one by one to see that the worlds find them.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kvorum.broker.assignments import PartitionKey
from kvorum.broker.fetcher import replica_fetcher
from kvorum.broker.fetcher.partition_fetch_state import PartitionFetchState, initial_fetch_state
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.leader import PartitionLeader
from kvorum.broker.partition_leader.partition_state import (
    CommittedPartitionState,
    IsrProposal,
    PendingExpandIsr,
    PendingShrinkIsr,
)
from kvorum.cli import main
from kvorum.controller.apis import alter_partition, broker_registration
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.node.broker.replica_alter_log_dirs_manager import ReplicaAlterLogDirsManager
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.world import run_partitions_seed
from kvorum.simulation.properties.catalogue import P6
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.segment import Segment
from kvorum.storage.topic_log import unified_log
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequestPartitionData
from kvorum.wire.records import RecordBatch, read_batches

# pyright: reportPrivateUsage=false
# (a mistake is made inside of a class)


LOSS = frozenset(
    one.meaning
    for one in (
        promises.LEADER_COMPLETE,
        promises.COMMITTED_IN_SYNC,
        promises.ONCE_IN_ORDER,
        promises.ACKNOWLEDGED,
        promises.OFFSETS_KEPT,
    )
)
STANDSTILL = frozenset(
    {"in peace everybody is in sync again", "in peace every write is acknowledged"}
)


@dataclass(frozen=True)
class Mistake:
    """A mistake that can be made; the world of `seed` shows it."""

    name: str
    make: Callable[[pytest.MonkeyPatch], None]
    seed: int
    claims: frozenset[str] = LOSS


def _committed_isr_only(patch: pytest.MonkeyPatch) -> None:
    def members(self: PendingExpandIsr) -> frozenset[int]:
        return self.committed.members

    def not_even_waiting(self: PartitionLeader, _: int) -> bool:
        return False

    patch.setattr(PendingExpandIsr, "maximal", property(members))
    raise_it = PartitionLeader._raise_high_watermark

    def without_those_who_join(self: PartitionLeader, now_ms: float) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(PartitionLeader, "_may_join", not_even_waiting)
            raise_it(self, now_ms)

    patch.setattr(PartitionLeader, "_raise_high_watermark", without_those_who_join)


def _shrink_at_once(patch: pytest.MonkeyPatch) -> None:
    def without(self: PendingShrinkIsr) -> frozenset[int]:
        return self.committed.members - self.leaving

    patch.setattr(PendingShrinkIsr, "maximal", property(without))


def _stale_leader_epochs(patch: pytest.MonkeyPatch) -> None:
    refuse = alter_partition.refusal_code

    def lenient(
        cluster: ClusterImage,
        partition: PartitionRegistration,
        wanted: AlterPartitionRequestPartitionData,
        *,
        broker_id: int,
        isr: list[tuple[int, int]],
    ) -> ErrorCode:
        wanted.leader_epoch = partition.leader_epoch
        wanted.partition_epoch = partition.partition_epoch
        return refuse(cluster, partition, wanted, broker_id=partition.leader, isr=isr)

    patch.setattr(alter_partition, "refusal_code", lenient)


def _below_the_epoch_start(patch: pytest.MonkeyPatch) -> None:
    expand = PartitionLeader._expansion

    def by_high_watermark(self: PartitionLeader, follower: int) -> IsrProposal | None:
        self.epoch_start_offset = 0
        return expand(self, follower)

    patch.setattr(PartitionLeader, "_expansion", by_high_watermark)


def _minimum_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionLeader, "is_under_min_isr", property(lambda _: False))


def _believe_in_clean_shutdowns(patch: pytest.MonkeyPatch) -> None:
    def clean(*_: object) -> bool:
        return True

    patch.setattr(broker_registration, "_was_shutdown_clean", clean)


def _never_give_up_a_change(patch: pytest.MonkeyPatch) -> None:
    lead = PartitionLeader.lead

    def keep(
        self: PartitionLeader,
        partition: PartitionRegistration,
        *,
        log_end_offset: int,
        now_ms: float,
    ) -> bool:
        before = self.state
        told = lead(self, partition, log_end_offset=log_end_offset, now_ms=now_ms)
        if not isinstance(before, CommittedPartitionState):
            self.state = before
        return told

    patch.setattr(PartitionLeader, "lead", keep)


def _truncate_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As before KIP-101: what is committed may be above a follower's high watermark."""

    def by_high_watermark(partition: Partition, epoch: int) -> PartitionFetchState:
        state = initial_fetch_state(partition, epoch)
        return replace(state, fetch_offset=partition.log.high_watermark, is_truncating=True)

    patch.setattr(replica_fetcher, "initial_fetch_state", by_high_watermark)


def _keep_producers_of_truncated_records(patch: pytest.MonkeyPatch) -> None:
    def high_watermark_only(self: UnifiedLog, _: int) -> None:
        self.update_high_watermark(self.high_watermark)

    patch.setattr(UnifiedLog, "_after_truncation", high_watermark_only)


def _take_answers_of_another_epoch(patch: pytest.MonkeyPatch) -> None:
    def same_offset(self: PartitionFetchState, asked: PartitionFetchState) -> bool:
        return self.fetch_offset == asked.fetch_offset

    def any_epoch(records: bytes, *, leader_epoch: int) -> list[RecordBatch]:
        return list(read_batches(records, is_cut_allowed=leader_epoch >= 0))

    patch.setattr(PartitionFetchState, "is_same_fetch", same_offset)
    patch.setattr(unified_log, "replicated_batches", any_epoch)


def _report_over_a_move(patch: pytest.MonkeyPatch) -> None:
    def never(_self: ReplicaAlterLogDirsManager, _key: PartitionKey) -> bool:
        return False

    patch.setattr(ReplicaAlterLogDirsManager, "has_reported", never)


def _flush_closed_logs(patch: pytest.MonkeyPatch) -> None:
    def flush(self: LocalLog) -> int:
        with self._files_lock:
            return self._flush_all()

    patch.setattr(LocalLog, "flush", flush)


def _truncate_no_copy(patch: pytest.MonkeyPatch) -> None:
    def current_only(self: Partition, offset: int, *, now_ms: int, fully: bool = False) -> None:
        truncate = self.log.truncate_fully_and_start_at if fully else self.log.truncate_to
        truncate(offset, now_ms=now_ms)

    patch.setattr(Partition, "truncate_to", current_only)


def _sync_nothing(patch: pytest.MonkeyPatch) -> None:
    def counted_only(_: Segment) -> None:
        return None

    patch.setattr(Segment, "sync", counted_only)
    patch.setattr(Segment, "sync_with_indexes", counted_only)


MISTAKES = [
    Mistake("the high watermark goes by the committed ISR", _committed_isr_only, 7),
    Mistake("who is to leave the ISR has left it", _shrink_at_once, 2),
    Mistake("the high watermark moves below min.insync.replicas", _minimum_is_ignored, 1),
    Mistake("lost logs are not noticed", _believe_in_clean_shutdowns, 21),
    Mistake("a change is never given up", _never_give_up_a_change, 9, STANDSTILL),
    Mistake("a follower truncates to its high watermark", _truncate_to_the_high_watermark, 3),
    Mistake(
        "producers of truncated records are remembered",
        _keep_producers_of_truncated_records,
        3,
        # Their transactions are taken for open, or for aborted ones.
        LOSS | {promises.READS_COMMITTED.meaning},
    ),
    Mistake(
        "a flush makes nothing durable",
        _sync_nothing,
        1,
        frozenset({promises.SOUND_DISK.meaning, P6.meaning}),
    ),
    Mistake("changes by past leaders are accepted", _stale_leader_epochs, 30),
    Mistake("the start of the leader's epoch is ignored", _below_the_epoch_start, 12),
    Mistake(
        "a report of where a log is takes the place of its move's",
        _report_over_a_move,
        60167,
        # The move waits for ever, and compaction for its end.
        frozenset({promises.COMPACTED.meaning}),
    ),
    Mistake(
        "a flush of a log that has moved takes its directory offline",
        _flush_closed_logs,
        801061,
        frozenset({promises.ALL_IN_SYNC_AGAIN.meaning}),
    ),
    Mistake(
        "a log that moves keeps what its replica has lost",
        _truncate_no_copy,
        870533,
        frozenset({promises.READ_IS_COMMITTED.meaning}),
    ),
    Mistake("answers of another epoch are taken", _take_answers_of_another_epoch, 4, STANDSTILL),
]


FIXED_SEEDS = range(7, 13)
FRESH_SEEDS = 12


def test_worlds_known_for_long_have_every_fault_and_lose_nothing() -> None:
    counts: Counter[str] = Counter()
    for seed in FIXED_SEEDS:
        result = run_partitions_seed(seed)
        assert result.broken is None, f"seed {seed}: {result.message}"
        assert result.counts["committed records"] > 100
        counts.update(result.counts)
    faults = ("kill", "power", "stop", "cut", "controller", "struck while joining")
    assert [fault for fault in faults if counts[fault] < 3] == []
    assert counts["leaders"] > 20
    assert counts["ISR changes"] > 50


@pytest.mark.parametrize(
    "number",
    [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, FRESH_SEEDS))],
)
def test_a_fresh_world_loses_nothing(number: int) -> None:
    seed = secrets.randbelow(2**40)
    result = run_partitions_seed(seed)
    assert result.broken is None, f"seed {seed}: {result.message}"


@pytest.mark.process
@pytest.mark.parametrize("seed", [5, 91])
def test_a_world_repeats_itself_in_another_process(seed: int, tmp_path: Path) -> None:
    """Strings hash differently there, so an order that hangs on a map or a set would show."""
    trace = tmp_path / "trace"
    assert main(["simulate", "--only", "brokers", f"--seed={seed}", f"--trace={trace}"]) == 0
    assert "partition 0: leader" in trace.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_found(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world known for it comes first; if the worlds have changed, another one shows it."""
    mistake.make(monkeypatch)
    broken: str | None = None
    for seed in (mistake.seed, *range(1, 60)):
        broken = run_partitions_seed(seed).broken
        if broken is not None:
            break
    assert broken in mistake.claims
