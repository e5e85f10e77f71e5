"""The state that all parts of a shard of groups share."""

from collections.abc import Callable
from typing import TypeAlias

from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.modern_group.group_config import GroupConfig, GroupProtocol, group_config
from kvorum.groups.modern_group.metadata_hash import TopicHashes
from kvorum.groups.outbox import GroupOutbox
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.state_partitions import StatePartitions
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode

Group: TypeAlias = ClassicGroup | ConsumerGroup | ShareGroup


class ShardState:
    """The groups of a shard, their timeline, and the effects of the present call."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        new_uuid: Callable[[], str],
        image: Callable[[], MetadataImage],
        broker_id: int,
    ) -> None:
        self.settings = settings
        self.new_uuid = new_uuid
        """Makes the random part of a member id: a UUID as 36 characters with dashes."""
        self._image = image
        self._broker_id = broker_id
        self._configs = self.image.configs
        self._group_configs: dict[tuple[GroupProtocol, str], GroupConfig] = {}
        """The times of groups by these configurations, since each heartbeat asks for them."""
        self.new_topics_version = self.image.last_offset
        """The offset of the newest metadata in which topics came, or of that at the load."""
        self.topic_hashes = TopicHashes()
        self.resolving: set[str] = set()
        """The ids of groups whose regular expressions are about to be matched with the topics."""
        self.timeline = Timeline()
        self.outbox = GroupOutbox()
        self.groups = TimelineMap[str, Group](self.timeline)
        self.share_state_partitions = TimelineMap[str, StatePartitions](self.timeline)
        """The partitions with a state, by the ids of share groups."""
        self.groups_of_other_protocols: set[str] = set()
        """The ids of streams groups, which only a real broker coordinates.

        The records of such a group are read when the log is loaded, and never written here.
        """

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has published last."""
        return self._image()

    def demand_served(self, group_id: str) -> None:
        """Refuse a group that only a real broker coordinates with NOT_COORDINATOR.

        That is a streams group. Its clients then wait until a broker leads the partition
        that serves it.
        """
        if group_id in self.groups_of_other_protocols:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)

    def find_classic_group(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group; None for an unknown id, and for that of another protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def find_consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return a consumer group; None for an unknown id, and for that of another protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def find_share_group(self, group_id: str) -> ShareGroup | None:
        """Return a share group; None for an unknown id, and for that of another protocol."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def group(self, group_id: str, epoch: int | None = None) -> Group:
        """Return a group; refuses the id of none with GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id, epoch)
        if group is None:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def classic_group(self, group_id: str, epoch: int | None = None) -> ClassicGroup:
        """Return a classic group; refuses every other id with GROUP_ID_NOT_FOUND."""
        group = self.group(group_id, epoch)
        if isinstance(group, ClassicGroup):
            return group
        raise RequestError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group."
        )

    def consumer_group(self, group_id: str, epoch: int | None = None) -> ConsumerGroup:
        """Return a consumer group; refuses every other id with GROUP_ID_NOT_FOUND."""
        group = self.group(group_id, epoch)
        if isinstance(group, ConsumerGroup):
            return group
        raise RequestError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group."
        )

    def share_group(self, group_id: str, epoch: int | None = None) -> ShareGroup:
        """Return a share group; refuses every other id with GROUP_ID_NOT_FOUND."""
        group = self.group(group_id, epoch)
        if isinstance(group, ShareGroup):
            return group
        raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")

    def get_or_create_group(self, group_id: str, now_ms: int) -> Group:
        """Return a group; one that does not exist is made in memory at `now_ms`, classic."""
        return self.groups.get(group_id) or self.create_classic_group(group_id, now_ms)

    def create_classic_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """Return a new classic group, made in memory at `now_ms`."""
        group = ClassicGroup(group_id=group_id, current_state_timestamp=now_ms)
        self.groups.set(group_id, group)
        return group

    def get_or_create_consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return the consumer group of a record.

        Offsets may have come before it in the log: they made a simple group, whose place it takes.
        """
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            group = ConsumerGroup(group_id, self.timeline)
            self.groups.set(group_id, group)
        return group

    def get_or_create_share_group(self, group_id: str) -> ShareGroup:
        """Return the share group of a record; it takes the place of a group of another protocol."""
        group = self.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            group = ShareGroup(group_id, self.timeline)
            self.groups.set(group_id, group)
        return group

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the times of a consumer group: its own, or the broker's."""
        return self._config(GroupProtocol.CONSUMER, group_id)

    def share_group_config(self, group_id: str) -> GroupConfig:
        """Return the times of a share group: its own, or the broker's."""
        return self._config(GroupProtocol.SHARE, group_id)

    def _config(self, protocol: GroupProtocol, group_id: str) -> GroupConfig:
        configs = self.image.configs
        if configs is not self._configs:
            self._configs = configs
            self._group_configs = {}
        found = self._group_configs.get((protocol, group_id))
        if found is None:
            is_share = protocol is GroupProtocol.SHARE
            settings = self.settings.share if is_share else self.settings.consumer
            found = group_config(configs, group_id, protocol, settings, broker_id=self._broker_id)
            self._group_configs[protocol, group_id] = found
        return found
