"""A member of a consumer group, as records have it (ConsumerGroupMember)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self, TypeAlias

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.classic_group.supported_protocol import SupportedProtocol
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, MemberState

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""The epoch at which each partition was assigned, by topic id and partition."""
NO_PARTITIONS: Final[PartitionEpochs] = MappingProxyType({})
LEAVE_STATIC_EPOCH: Final = -2
NO_REBALANCE_TIMEOUT: Final = -1
NO_REGEX: Final = ""


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """The facts about a member of a consumer group that uses the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[SupportedProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMember:
    """A member; `subscribed_topic_regex` is empty where the member has no regular expression.

    `assigned` are the partitions that it may own at `member_epoch`, `pending_revocation` those that
    it has yet to give up. `rack_id`, `instance_id` and `server_assignor` are None where the member
    names none, `rebalance_timeout_ms` is -1 until it does.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NO_REBALANCE_TIMEOUT
    subscribed_topic_names: OrderedSet[str] = field(default_factory=OrderedSet[str])
    subscribed_topic_regex: str = NO_REGEX
    server_assignor: str | None = None
    classic_metadata: ClassicMemberMetadata | None = None
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)
    pending_revocation: PartitionEpochs = field(default_factory=lambda: NO_PARTITIONS)

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id (KIP-345)."""
        return self.instance_id is not None

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member joins by JoinGroup."""
        return self.classic_metadata is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has all of the target of an epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def has_all_of(self, owned: Mapping[bytes, Collection[int]]) -> bool:
        """Return whether all these partitions, by topic id, are assigned to the member."""
        return all(
            partition in self.assigned.get(topic_id, ())
            for topic_id, partitions in owned.items()
            for partition in partitions
        )

    def at_epoch(
        self,
        member_epoch: int,
        state: MemberState,
        assigned: PartitionEpochs,
        pending_revocation: PartitionEpochs = NO_PARTITIONS,
    ) -> Self:
        """Return the member after a step of its reconciliation, also one within its epoch."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
        )
