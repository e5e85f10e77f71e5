"""Sources of a broker key's value: four layers, in order of precedence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    DYNAMIC_LOG_TIMES,
    InvalidConfigError,
    Settings,
    UpdateMode,
    bounded_intervals,
    broker_definition,
    broker_synonyms,
    broker_value,
    check_log_times,
    convert_to_text,
    default_value,
    parse_value,
    updated_settings,
)
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.effective_configs import BrokerConfigLayers, ConfigSource

_LISTENER_PREFIX = "listener.name."
_FOR_LISTENERS_OF_ALL: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
PER_LISTENER_ONLY: Final = frozenset(
    {
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
    }
)


@dataclass(frozen=True, slots=True)
class Synonym:
    """A key that could give another key its value, and its value in one layer."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigLayers(BrokerConfigLayers):
    """The values that a node applies: its own, the cluster's, its file's, and the defaults."""

    def synonyms(self, name: str) -> list[Synonym]:
        """Return every value that the key `name` could have, the effective one first.

        Values before the first value of the key itself are left out: they belong to a more specific
        key.
        """
        names = broker_synonyms(name)
        found = [
            Synonym(synonym, values[synonym], source)
            for source, values in (
                (ConfigSource.DYNAMIC_BROKER, self.node),
                (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.cluster),
                (ConfigSource.STATIC_BROKER, self.static),
            )
            for synonym in names
            if synonym in values
        ]
        for synonym in names:
            default = default_text(synonym)
            if default is not None:
                found.append(Synonym(synonym, default, ConfigSource.DEFAULT))
        own = [index for index, synonym in enumerate(found) if synonym.name == name]
        return found[own[0] :] if own else []

    def updated(self, settings: Settings) -> Settings:
        """Return a node's settings with the dynamic values of those of their keys that have one."""
        texts = self.texts()
        return updated_settings(
            settings, lambda name: broker_value(name, texts), {*self.node, *self.cluster}
        )

    def texts(self) -> dict[str, str]:
        """Return the effective value of each key that is set explicitly.

        A dynamic key removes the values of its whole family from weaker layers: log.retention.ms
        removes log.retention.hours too.
        """
        merged = dict(self.static)
        for layer in (self.cluster, self.node):
            for name in layer:
                if not name.startswith(_LISTENER_PREFIX):
                    for relative in broker_synonyms(name):
                        merged.pop(relative, None)
            merged |= layer
        return merged | bounded_intervals(merged)


def config_layers(configs: ConfigsImage, *, node_id: int, texts: Mapping[str, str]) -> ConfigLayers:
    """Return the layers of node `node_id`; `texts` is the content of its properties file."""
    return ConfigLayers(
        node=applied_values(configs.of(ResourceType.BROKER, str(node_id)), is_for_all=False),
        cluster=applied_values(configs.of_cluster(), is_for_all=True),
        static=texts,
    )


def applied_values(texts: Mapping[str, str], *, is_for_all: bool) -> dict[str, str]:
    """Return those dynamic values in the log that a node applies.

    The controller writes every value to the log, as Kafka's does. A node ignores values that are
    invalid for their key, keys that cannot change while it runs, and keys that only a single broker
    may have.
    """
    return {name: text for name, text in texts.items() if _is_applied(name, text, is_for_all)}


def _is_applied(name: str, text: str, is_for_all: bool) -> bool:
    definition = broker_definition(name)
    is_of_a_listener = name.startswith(_LISTENER_PREFIX)
    base = name if definition is None else definition.name
    if is_of_a_listener and is_for_all and base not in _FOR_LISTENERS_OF_ALL:
        return False
    if definition is None:
        return True
    if definition.is_read_only:
        return is_of_a_listener
    is_of_one_broker = definition.update_mode is UpdateMode.PER_BROKER
    if is_of_one_broker and (is_for_all or name in PER_LISTENER_ONLY):
        return False
    try:
        parse_value(definition, text)
        if name in DYNAMIC_LOG_TIMES:
            check_log_times({name: text})
    except InvalidConfigError:
        return False
    return True


def default_text(name: str) -> str | None:
    """Return the default of a broker key as text, None where it has none."""
    definition = BROKER_CONFIGS.get(name)
    if definition is None or definition.is_required:
        return None
    return convert_to_text(default_value(definition))
