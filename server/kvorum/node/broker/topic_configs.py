"""The settings of the topics that a broker hosts, by an image and the broker's own properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvorum.broker.topic_log_configs import TopicValues
from kvorum.broker.views.config_layers import config_layers
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.effective_configs import BrokerConfigLayers
from kvorum.metadata.image import MetadataImage


class TopicConfigs:
    """Finds a topic's values: its own, those of this broker, of all brokers, of its properties."""

    def __init__(self, broker_id: int, texts: Mapping[str, str]) -> None:
        self._broker_id = broker_id
        self._texts = texts

    def values(self, topic: str, image: MetadataImage) -> TopicValues:
        """Return the values of one topic."""
        return TopicValues(topic, image.configs, self._layers(image))

    def changed(
        self, before: MetadataImage, image: MetadataImage, topics: Iterable[str]
    ) -> dict[str, TopicValues]:
        """Return the values of those topics whose values may have changed."""
        if image.configs is before.configs:
            return {}
        are_all_concerned = self._layers(before) != self._layers(image)
        return {
            topic: self.values(topic, image)
            for topic in topics
            if are_all_concerned
            or before.configs.of(ResourceType.TOPIC, topic)
            != image.configs.of(ResourceType.TOPIC, topic)
        }

    def _layers(self, image: MetadataImage) -> BrokerConfigLayers:
        return config_layers(image.configs, node_id=self._broker_id, texts=self._texts)
