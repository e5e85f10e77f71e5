"""A coordinator of a broker that is imported only when there is something to coordinate.

The code of coordinators is a good part of what a broker imports, and many brokers in tests never
see a group or a transaction.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher


class CoordinatorService(Protocol):
    """The service of a coordinator."""

    def on_image(self, before: MetadataImage, after: MetadataImage, /) -> None:
        """Follow a change of the image that the partitions have followed already."""
        ...

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        ...


ServiceT = TypeVar("ServiceT", bound=CoordinatorService)


class CoordinatorOnDemand(Generic[ServiceT]):
    """Makes the service with the first request, or when its `topic` is there."""

    def __init__(
        self, topic: str, publisher: BrokerMetadataPublisher, make: Callable[[], ServiceT]
    ) -> None:
        self._topic = topic
        self._make = make
        self._made: ServiceT | None = None
        self._image: MetadataImage | None = None
        self._is_closed = False
        publisher.after_change(self._on_image)

    @property
    def service(self) -> ServiceT:
        """The coordinator; it knows the image that the partitions have followed."""
        if self._made is None:
            self._made = self._make()
            if self._image is not None:
                self._made.on_image(MetadataImage(), self._image)
            if self._is_closed:
                self._made.close()
        return self._made

    @property
    def service_if_made(self) -> ServiceT | None:
        """The coordinator; None where nothing was coordinated yet."""
        return self._made

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._is_closed = True
        if self._made is not None:
            self._made.close()

    def _on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self._image = after
        if self._made is not None:
            self._made.on_image(before, after)
        elif after.topics.by_name(self._topic) is not None:
            _ = self.service
