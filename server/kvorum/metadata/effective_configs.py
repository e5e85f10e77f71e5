"""Effective configuration of topics: own values, then the brokers' values, then defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.config_definitions import (
    TOPIC_CONFIGS,
    ConfigDefinition,
    convert_to_text,
    default_value,
)
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.wire.java_text import parse_java_integer

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"


@unique
class ConfigSource(IntEnum):
    """Sources of a value, with the numbers of the responses."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class EffectiveConfig(NamedTuple):
    """One key with its effective value and the source of that value."""

    definition: ConfigDefinition
    value: str | None
    source: ConfigSource

    @property
    def name(self) -> str:
        """The key."""
        return self.definition.name


_DEFAULTS: Final[Mapping[str, EffectiveConfig]] = MappingProxyType(
    {
        name: EffectiveConfig(
            definition, convert_to_text(default_value(definition)), ConfigSource.DEFAULT
        )
        for name, definition in TOPIC_CONFIGS.items()
    }
)


@dataclass(frozen=True, slots=True)
class BrokerConfigLayers:
    """The values of broker keys that topic keys fall back to, in order of precedence."""

    node: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cluster: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    static: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def broker_layers(
    configs: ConfigsImage, *, node_id: int, static: Mapping[str, str]
) -> BrokerConfigLayers:
    """Return the layers of node `node_id`; `static` is the content of its properties file."""
    return BrokerConfigLayers(
        node=configs.of(ResourceType.BROKER, str(node_id)),
        cluster=configs.of_cluster(),
        static=static,
    )


def effective_topic_config(
    name: str, topic: Mapping[str, str], layers: BrokerConfigLayers
) -> EffectiveConfig:
    """Return the effective value of the topic key `name`; `topic` has the topic's own values."""
    definition = TOPIC_CONFIGS[name]
    if name in topic:
        return EffectiveConfig(definition, topic[name], ConfigSource.TOPIC)
    for source, values in (
        (ConfigSource.DYNAMIC_BROKER, layers.node),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, layers.cluster),
        (ConfigSource.STATIC_BROKER, layers.static),
    ):
        for synonym, factor in TOPIC_SYNONYMS.get(name, ()):
            if synonym in values:
                return EffectiveConfig(definition, _scaled(values[synonym], factor), source)
    return _DEFAULTS[name]


def effective_topic_configs(
    topic: Mapping[str, str], layers: BrokerConfigLayers
) -> list[EffectiveConfig]:
    """Return every topic key with its effective value, by name.

    Internal keys are included only where the topic sets them.
    """
    return [
        effective_topic_config(name, topic, layers)
        for name in sorted(TOPIC_CONFIGS)
        if name in topic or not TOPIC_CONFIGS[name].is_internal
    ]


def static_min_insync_replicas(static: Mapping[str, str]) -> int:
    """Return the value of min.insync.replicas that follows from a node's properties file."""
    config = effective_topic_config(MIN_INSYNC_REPLICAS, {}, BrokerConfigLayers(static=static))
    return whole_number(config)


def whole_number(config: EffectiveConfig) -> int:
    """Return a value as a number, or the default where it is not one, as brokers' keys may be.

    Controllers take any value of a broker's key.
    """
    try:
        return int(config.value or "")
    except ValueError:
        return int(_DEFAULTS[config.name].value or 0)


def _scaled(text: str, factor: int) -> str:
    """Return hours or minutes as milliseconds; as with Kafka's controllers, 0 for no number."""
    if factor == 1:
        return text
    try:
        return str(parse_java_integer(text.strip(), bits=32) * factor)
    except ValueError:
        return "0"
