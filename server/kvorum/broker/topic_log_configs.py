"""The settings of a topic's logs, from its configuration and the broker's (Kafka's LogConfig)."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from kvorum.broker.views.config_layers import ConfigLayers, config_layers
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigValue,
    InvalidConfigError,
    default_value,
    parse_value,
    read_settings,
)
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.effective_configs import (
    MIN_INSYNC_REPLICAS,
    BrokerConfigLayers,
    effective_topic_config,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.own_values import own_number
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig

PRODUCER_EXPIRATION: Final = "producer.id.expiration.ms"


class TopicValues:
    """The effective values of one topic's keys; a value that is invalid is its default."""

    def __init__(self, name: str, configs: ConfigsImage, layers: BrokerConfigLayers) -> None:
        self._texts = configs.of(ResourceType.TOPIC, name)
        self._layers = layers

    def log_config(self) -> TopicLogConfig:
        """Return the settings of the topic's logs."""
        # Several fields have one key.
        return read_settings(TopicLogConfig, cache(self._value))

    def min_insync_replicas(self) -> int:
        """Return how many replicas must be in sync for a write with ``acks=all``."""
        value = self._value(MIN_INSYNC_REPLICAS)
        assert isinstance(value, int)
        return value

    def _value(self, key: str) -> ConfigValue:
        found = effective_topic_config(key, self._texts, self._layers)
        try:
            return parse_value(found.definition, found.value)
        except InvalidConfigError:
            default = effective_topic_config(key, {}, BrokerConfigLayers())
            return parse_value(default.definition, default.value)


class TopicConfigs:
    """Finds a topic's values: its own, those of this broker, of all brokers, of its properties."""

    def __init__(self, broker_id: int, texts: Mapping[str, str]) -> None:
        self._broker_id = broker_id
        self._texts = texts

    def values(self, topic: str, image: MetadataImage) -> TopicValues:
        """Return the values of one topic."""
        return TopicValues(topic, image.configs, self.layers(image))

    def changed(
        self, before: MetadataImage, image: MetadataImage, topics: Iterable[str]
    ) -> dict[str, TopicValues]:
        """Return the values of those topics whose values may have changed."""
        if image.configs is before.configs:
            return {}
        are_all_concerned = self.layers(before) != self.layers(image)
        return {
            topic: self.values(topic, image)
            for topic in topics
            if are_all_concerned
            or before.configs.of(ResourceType.TOPIC, topic)
            != image.configs.of(ResourceType.TOPIC, topic)
        }

    def producer_expiration_ms(self, image: MetadataImage) -> int:
        """Return the milliseconds after which a producer that writes nothing is forgotten.

        They are the same for all topics.
        """
        definition = BROKER_CONFIGS[PRODUCER_EXPIRATION]
        own = image.configs.of(ResourceType.BROKER, str(self._broker_id))
        for texts in (own, image.configs.of_cluster(), self._texts):
            value = own_number(definition, texts)
            if value is not None:
                return value
        default = default_value(definition)
        assert isinstance(default, int)
        return default

    def layers(self, image: MetadataImage) -> ConfigLayers:
        """Return the values of this broker's keys."""
        return config_layers(image.configs, node_id=self._broker_id, texts=self._texts)
