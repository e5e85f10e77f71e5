"""Has the parts of this broker follow the metadata image (Kafka's BrokerMetadataPublisher)."""

import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManagers
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Signal
from kvorum.node.events.log_event import LogEvent

ImageFollower: TypeAlias = Callable[[MetadataImage, MetadataImage], None]
"""Takes note of a change from one image to the next; it may raise nothing."""
REFUSED_RETRY_MS: Final = 5_000
"""The delay before a partition that got no descriptors is tried again."""
_log = logging.getLogger(__name__)


class BrokerMetadataPublisher:
    """Applies one image after the other; those in between may be left out."""

    def __init__(
        self, broker: ThisBroker, replicas: ReplicaManager, quotas: ReplicationQuotaManagers
    ) -> None:
        self._broker = broker
        self._replicas = replicas
        self._quotas = quotas
        self._seen = MetadataImage()
        self._changed = Signal(broker.runtime)
        self._followers: list[ImageFollower] = []
        self.is_current = False
        """Whether the partitions are as the published image has them."""

    def after_change(self, follower: ImageFollower) -> None:
        """Call `follower` with two images when the partitions are as the second has them."""
        self._followers.append(follower)

    async def wait_until(
        self, are_there: Callable[[], bool], *, timeout_ms: float | None = None
    ) -> None:
        """Wait until some partitions are there, or all that the image has, or the time is up."""
        await self._replicas.turns.until(lambda: self.is_current or are_there(), timeout_ms)

    async def startup(self) -> None:
        """Follow the published image, and return once the partitions are as it has them."""
        await self._apply(self._broker.image())
        self.is_current = not self._changed.is_set
        # It ends with the broker: one that does not follow may write where another leads.
        self._broker.run(self._follow())

    def on_metadata_update(self, image: MetadataImage) -> None:
        """Take note of an image that is published."""
        seen = self._seen
        if image.topics is not seen.topics or image.configs is not seen.configs:
            self.is_current = False
            self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._apply(self._broker.image())
            self.is_current = not self._changed.is_set
            self._replicas.turns.beat()

    async def _apply(self, image: MetadataImage) -> None:
        """Follow the changes from the last image seen to this one."""
        before, self._seen = self._seen, image
        if image.configs is not before.configs:
            self._quotas.update(image.configs, self._broker.id)
        if not await self._replicas.apply_delta(before, image):
            return
        for follower in self._followers:
            follower(before, image)
        refused = self._replicas.refused
        if refused:
            error = str(next(iter(refused.values())))
            _log.error(
                LogEvent("Partitions cannot be hosted for now", count=len(refused), error=error)
            )
            runtime = self._broker.runtime
            runtime.call_at(runtime.monotonic_ms() + REFUSED_RETRY_MS, self._changed.set)
