# pyright: reportPrivateUsage=false
# (a mistake is made inside of a class)
"""Mistakes of a leader, of its controller and of the way they talk, to be found by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kvorum.broker.partition_leader import leader
from kvorum.broker.partition_leader.leader import PartitionLeader
from kvorum.broker.partition_leader.partition_state import (
    CommittedPartitionState,
    IsrProposal,
    PendingExpandIsr,
    PendingShrinkIsr,
)
from kvorum.controller.apis import alter_partition, broker_registration
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequestPartitionData


@dataclass(frozen=True)
class Mistake:
    """Something that somebody could get wrong; the world of `seed` shows it."""

    name: str
    make: Callable[[pytest.MonkeyPatch], None]
    seed: int
    claim: str = "a new leader has everything that was committed"


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


def _no_broker_epochs(patch: pytest.MonkeyPatch) -> None:
    def active(cluster: ClusterImage, broker_id: int, _: int | None) -> bool:
        return cluster.is_broker_active(broker_id)

    patch.setattr(leader, "may_join_isr", active)
    patch.setattr(alter_partition, "_is_eligible", active)


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
        self._epoch_start_offset = 0
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


def _give_up_on_old_news(patch: pytest.MonkeyPatch) -> None:
    """As Kafka does: a rare world needs the leader's metadata to be late for long."""

    def never(self: PartitionLeader, _: PartitionRegistration) -> bool:
        return False

    patch.setattr(PartitionLeader, "_is_known", never)


MISTAKES = [
    Mistake("old news end a change under way", _give_up_on_old_news, 1101),
    Mistake("the high watermark goes by the committed ISR", _committed_isr_only, 8),
    Mistake("who is to leave the ISR has left it", _shrink_at_once, 2),
    Mistake("the epochs of brokers are ignored", _no_broker_epochs, 88),
    Mistake("changes by past leaders are accepted", _stale_leader_epochs, 39),
    Mistake("the start of the leader's epoch is ignored", _below_the_epoch_start, 5),
    Mistake("the high watermark moves below min.insync.replicas", _minimum_is_ignored, 3),
    Mistake("lost logs are not noticed", _believe_in_clean_shutdowns, 1),
    Mistake(
        "a change is never given up",
        _never_give_up_a_change,
        3,
        "in peace everybody is in sync again",
    ),
]
