"""A member of a share group, as records have it (ShareGroupMember)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, MemberState

NO_PARTITIONS: Final[Mapping[bytes, OrderedSet[int]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
    """A member; `assigned` are the partitions that it shares with others at `member_epoch`.

    `rack_id` is None where the member names none.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: OrderedSet[str] = field(default_factory=OrderedSet[str])
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=lambda: NO_PARTITIONS)

    @property
    def instance_id(self) -> None:
        """No id: there are no static members of share groups."""
        return

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has the target of an epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch
