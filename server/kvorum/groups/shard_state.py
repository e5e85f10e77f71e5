"""The state that all parts of a shard of groups share."""

from collections.abc import Callable

from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.outbox import GroupOutbox
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode


class ShardState:
    """The groups of a shard, their timeline, and the effects of the present call."""

    def __init__(self, settings: GroupCoordinatorSettings, new_uuid: Callable[[], str]) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        """Makes the random part of a member id: a UUID as 36 characters with dashes."""
        self.timeline = Timeline()
        self.outbox = GroupOutbox()
        self.groups = TimelineMap[str, ClassicGroup](self.timeline)
        self.groups_of_other_protocols: set[str] = set()
        """The ids of consumer, share and streams groups, which only a real broker coordinates.

        The records of such a group are read when the log is loaded, and never written here.
        """

    def demand_classic(self, group_id: str) -> None:
        """Refuse a group of another protocol with NOT_COORDINATOR.

        Its clients then wait until a broker leads the partition that serves the protocol.
        """
        if group_id in self.groups_of_other_protocols:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)

    def group(self, group_id: str, epoch: int | None = None) -> ClassicGroup:
        """Return a group; refuses the id of none with GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id, epoch)
        if group is None:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def get_or_create_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Return a group; one that does not exist is made in memory at `now_ms`."""
        group = self.groups.get(group_id)
        if group is None:
            group = ClassicGroup(group_id=group_id, current_state_timestamp=now_ms)
            self.groups.set(group_id, group)
        return group
