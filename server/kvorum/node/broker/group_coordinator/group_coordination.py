"""The group coordinator of a broker, imported only when there is something to coordinate.

Its code is a good part of what a broker imports, and many brokers in tests never see a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher

if TYPE_CHECKING:
    from kvorum.groups.shard import GroupCoordinatorShard
    from kvorum.node.broker.group_coordinator.group_coordinator_service import (
        GroupCoordinatorService,
    )


class GroupCoordination:
    """Makes the service with the first request, or when ``__consumer_offsets`` is there."""

    def __init__(
        self, publisher: BrokerMetadataPublisher, make: Callable[[], GroupCoordinatorService]
    ) -> None:
        self._make = make
        self._made: GroupCoordinatorService | None = None
        self._image: MetadataImage | None = None
        self._is_closed = False
        publisher.after_change(self._on_image)

    @property
    def service(self) -> GroupCoordinatorService:
        """The coordinator; it knows the image that the partitions have followed."""
        if self._made is None:
            self._made = self._make()
            if self._image is not None:
                self._made.on_image(MetadataImage(), self._image)
            if self._is_closed:
                self._made.runtime.close()
        return self._made

    def active_shards(self) -> Iterator[GroupCoordinatorShard]:
        """Yield the shards that are loaded; to be read only."""
        if self._made is not None:
            yield from self._made.runtime.active_shards()

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._is_closed = True
        if self._made is not None:
            self._made.runtime.close()

    def _on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self._image = after
        if self._made is not None:
            self._made.on_image(before, after)
        elif after.topics.by_name(GROUP_METADATA_TOPIC) is not None:
            _ = self.service
