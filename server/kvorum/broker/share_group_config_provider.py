"""The configuration of each share group that is in force (Kafka's ShareGroupConfigProvider)."""

from collections.abc import Callable

from kvorum.broker.share_group_config import (
    ShareFetchSettings,
    ShareGroupConfig,
    share_group_config,
)
from kvorum.metadata.image import MetadataImage


class ShareGroupConfigProvider:
    """Reads the configuration of a group once for each image of the metadata."""

    def __init__(self, settings: ShareFetchSettings, image: Callable[[], MetadataImage]) -> None:
        self.settings = settings
        """The configuration of the broker."""
        self._image = image
        self._read_image: MetadataImage | None = None
        self._configs: dict[str, ShareGroupConfig] = {}

    def config(self, group_id: str) -> ShareGroupConfig:
        """Return the configuration of a group that holds at the moment."""
        image = self._image()
        if image is not self._read_image:
            self._configs.clear()
            self._read_image = image
        known = self._configs.get(group_id)
        if known is None:
            known = self._configs[group_id] = share_group_config(image, group_id, self.settings)
        return known
