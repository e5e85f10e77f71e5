"""A partition leader at work in a small cluster of brokers 1, 2 and 3."""

from dataclasses import dataclass, field, replace

from tests.support.controller_under_test import (
    ControllerUnderTest,
    RegisteredBroker,
    started_cluster,
)

from kvorum.broker.partition_leader.leader import IsrProposal, PartitionLeader
from kvorum.broker.partition_leader.outcomes import Accepted, Answer
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.metadata.partition import PartitionRegistration

TOPIC_ID = b"t" * 16
LAG_MAX_MS = 100.0
PARTITION = PartitionRegistration(
    (1, 2, 3), (b"d" * 16,) * 3, isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=7
)


@dataclass
class Leading:
    """Broker 1 leads from offset 10 on; 2 is in sync, 3 is not."""

    partition: PartitionRegistration = PARTITION
    min_insync: int = 2
    high_watermark: int = 8
    log_end_offset: int = 10
    now_ms: float = 1_000.0
    controller: ControllerUnderTest = field(default_factory=started_cluster)

    def __post_init__(self) -> None:
        self.leader = PartitionLeader(
            RegisteredBroker(self.controller, 1),
            topic_id=TOPIC_ID,
            partition_index=0,
            lag_max_ms=LAG_MAX_MS,
            min_insync_replicas=self.min_insync,
            high_watermark=self.high_watermark,
        )
        assert self.lead()

    def epoch(self, broker_id: int) -> int:
        return self.controller.image.cluster.brokers[broker_id].epoch

    def lead(self, partition: PartitionRegistration | None = None) -> bool:
        self.partition = partition or self.partition
        return self.leader.lead(
            self.partition,
            log_end_offset=self.log_end_offset,
            stored_end_offset=self.log_end_offset,
            now_ms=self.now_ms,
        )

    def append(self, records: int) -> None:
        self.log_end_offset += records
        self.leader.on_append(self.log_end_offset, self.now_ms)

    def fetch(self, broker_id: int, offset: int, **changes: int) -> IsrProposal | None:
        fetch = FollowerFetch(
            broker_id=broker_id,
            broker_epoch=self.epoch(broker_id),
            leader_epoch=self.leader.leader_epoch,
            offset=offset,
        )
        return self.leader.on_fetch(replace(fetch, **changes), self.now_ms)

    def shrink(self) -> tuple[int, ...] | None:
        """Take replicas that lag out of the ISR; return the proposed ISR, None without a change."""
        proposal = self.leader.shrink(self.now_ms)
        return None if proposal is None else tuple(member for member, _ in proposal.isr)

    def answer(self, proposal: IsrProposal, answer: Answer) -> IsrProposal | None:
        return self.leader.on_answer(proposal, answer, self.now_ms)


def accepted(proposal: IsrProposal, *, epochs_ahead: int = 1) -> Accepted:
    return Accepted(
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch + epochs_ahead,
        isr=tuple(member for member, _ in proposal.isr),
        recovery_state=0,
    )
