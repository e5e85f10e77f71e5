"""Brokers with the real replicas and their controller, in worlds drawn from a number each.

A few worlds run every time, some of them new ones; ``kvorum simulate`` runs more.
Mistakes are made one by one to see that the worlds find them.
"""

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kvorum.broker.fetcher import replica_fetcher
from kvorum.broker.fetcher.fetch_requests import PartitionFetchState, initial_fetch_state
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.leader import (
    CommittedPartitionState,
    IsrProposal,
    PartitionLeader,
    PendingExpandIsr,
    PendingShrinkIsr,
)
from kvorum.cli import main
from kvorum.controller.apis import alter_partition, broker_registration
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.node.broker.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.world import run_partitions_seed
from kvorum.simulation.properties.catalogue import P6
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.segment import Segment
from kvorum.storage.topic_log import unified_log
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.records import RecordBatch, read_batches

# pyright: reportPrivateUsage=false
# (a mistake is made inside of a class)


_LOSSES = (
    promises.LEADER_COMPLETE,
    promises.COMMITTED_IN_SYNC,
    promises.ONCE_IN_ORDER,
    promises.ACKNOWLEDGED,
    promises.OFFSETS_KEPT,
)
LOSS = frozenset(one.meaning for one in _LOSSES)
STANDSTILL = frozenset(
    {"in peace everybody is in sync again", "in peace every write is acknowledged"}
)


Make = Callable[[pytest.MonkeyPatch], None]


def in_place_of(owner: object, name: str, defect: object) -> Make:
    """Return a mistake that is a function in place of another."""
    return lambda patch: patch.setattr(owner, name, defect)


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


def shrunk_at_once(state: PendingShrinkIsr) -> frozenset[int]:
    return state.committed.members - state.leaving


refusal_code = alter_partition.refusal_code


def lenient_refusal_code(
    cluster: ClusterImage,
    partition: PartitionRegistration,
    wanted: AlterPartitionRequest.PartitionData,
    *,
    broker_id: int,
    isr: list[tuple[int, int]],
) -> ErrorCode:
    wanted.leader_epoch = partition.leader_epoch
    wanted.partition_epoch = partition.partition_epoch
    return refusal_code(cluster, partition, wanted, broker_id=partition.leader, isr=isr)


expansion = PartitionLeader._expansion


def expansion_below_the_epoch_start(leader: PartitionLeader, follower: int) -> IsrProposal | None:
    leader.epoch_start_offset = 0
    return expansion(leader, follower)


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


lead = PartitionLeader.lead


def lead_and_keep_the_change(
    leader: PartitionLeader, partition: PartitionRegistration, *, log_end_offset: int, now_ms: float
) -> bool:
    before = leader.state
    told = lead(leader, partition, log_end_offset=log_end_offset, now_ms=now_ms)
    if not isinstance(before, CommittedPartitionState):
        leader.state = before
    return told


def truncating_to_the_high_watermark(partition: Partition, epoch: int) -> PartitionFetchState:
    """As before KIP-101: what is committed may be above a follower's high watermark."""
    state = initial_fetch_state(partition, epoch)
    return replace(state, fetch_offset=partition.log.high_watermark, is_truncating=True)


def keep_producers_of_truncated_records(log: UnifiedLog, _: int) -> None:
    log.update_high_watermark(log.high_watermark)


def _take_answers_of_another_epoch(patch: pytest.MonkeyPatch) -> None:
    def same_offset(self: PartitionFetchState, asked: PartitionFetchState) -> bool:
        return self.fetch_offset == asked.fetch_offset

    def any_epoch(records: bytes, *, leader_epoch: int) -> list[RecordBatch]:
        return list(read_batches(records, is_cut_allowed=leader_epoch >= 0))

    patch.setattr(PartitionFetchState, "is_same_fetch", same_offset)
    patch.setattr(unified_log, "replicated_batches", any_epoch)


def flush_even_if_closed(log: LocalLog) -> int:
    with log._files_lock:
        return log._flush_all()


def truncate_no_copy(
    partition: Partition, offset: int, *, now_ms: int, fully: bool = False
) -> None:
    log = partition.log
    truncate = log.truncate_fully_and_start_at if fully else log.truncate_to
    truncate(offset, now_ms=now_ms)


def _sync_nothing(patch: pytest.MonkeyPatch) -> None:
    def counted_only(_: Segment) -> None:
        return None

    patch.setattr(Segment, "sync", counted_only)
    patch.setattr(Segment, "sync_with_indexes", counted_only)


MISTAKES: dict[str, tuple[Make, int, frozenset[str]]] = {
    "the high watermark goes by the committed ISR": (_committed_isr_only, 7, LOSS),
    "who is to leave the ISR has left it": (
        in_place_of(PendingShrinkIsr, "maximal", property(shrunk_at_once)),
        2,
        LOSS,
    ),
    "the high watermark moves below min.insync.replicas": (
        in_place_of(PartitionLeader, "is_under_min_isr", property(never)),
        1,
        LOSS,
    ),
    "lost logs are not noticed": (
        in_place_of(broker_registration, "_was_shutdown_clean", always),
        21,
        LOSS,
    ),
    "a change is never given up": (
        in_place_of(PartitionLeader, "lead", lead_and_keep_the_change),
        9,
        STANDSTILL,
    ),
    "a follower truncates to its high watermark": (
        in_place_of(replica_fetcher, "initial_fetch_state", truncating_to_the_high_watermark),
        3,
        LOSS,
    ),
    "producers of truncated records are remembered": (
        in_place_of(UnifiedLog, "_after_truncation", keep_producers_of_truncated_records),
        # Their transactions are taken for open, or for aborted ones.
        3,
        LOSS | {promises.READS_COMMITTED.meaning},
    ),
    "a flush makes nothing durable": (
        _sync_nothing,
        1,
        frozenset({promises.SOUND_DISK.meaning, P6.meaning}),
    ),
    "changes by past leaders are accepted": (
        in_place_of(alter_partition, "refusal_code", lenient_refusal_code),
        30,
        LOSS,
    ),
    "the start of the leader's epoch is ignored": (
        in_place_of(PartitionLeader, "_expansion", expansion_below_the_epoch_start),
        12,
        LOSS,
    ),
    "a report of where a log is takes the place of its move's": (
        in_place_of(ReplicaAlterLogDirsManager, "has_reported", never),
        # The move waits for ever, and compaction for its end.
        60167,
        frozenset({promises.COMPACTED.meaning}),
    ),
    "a flush of a log that has moved takes its directory offline": (
        in_place_of(LocalLog, "flush", flush_even_if_closed),
        801061,
        frozenset({promises.ALL_IN_SYNC_AGAIN.meaning}),
    ),
    "a log that moves keeps what its replica has lost": (
        in_place_of(Partition, "truncate_to", truncate_no_copy),
        870533,
        frozenset({promises.READ_IS_COMMITTED.meaning}),
    ),
    "answers of another epoch are taken": (_take_answers_of_another_epoch, 4, STANDSTILL),
}
"""By their names: how each is made, the number of a world that shows it, and what it breaks."""


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
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world known for it comes first; if the worlds have changed, another one shows it."""
    make, known_seed, claims = MISTAKES[mistake]
    make(monkeypatch)
    broken = (run_partitions_seed(seed).broken for seed in (known_seed, *range(1, 60)))
    assert next(filter(None, broken), None) in claims
