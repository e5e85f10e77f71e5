"""Where the value of a broker key comes from: four layers, the strongest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    broker_synonyms,
    convert_to_text,
    default_value,
)
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.effective_configs import ConfigSource

_LISTENER_PREFIX = "listener.name."


@dataclass(frozen=True, slots=True)
class Synonym:
    """A key that could give another one its value, and the value it has in one layer."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigLayers:
    """The values one node sees: its own, the cluster's, its file's; beneath are the defaults."""

    node: Mapping[str, str]
    cluster: Mapping[str, str]
    static: Mapping[str, str]

    def synonyms(self, name: str) -> list[Synonym]:
        """Return every value that the key `name` could have, the one in force first.

        What stands before the first value of the key itself is left out: it belongs to a more
        special key.
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

    def texts(self) -> dict[str, str]:
        """Return the explicit value in force of each key that has one.

        A dynamic key takes away what weaker layers say of its whole family: log.retention.ms that
        of log.retention.hours too.
        """
        merged = dict(self.static)
        for layer in (self.cluster, self.node):
            for name in layer:
                if not name.startswith(_LISTENER_PREFIX):
                    for relative in broker_synonyms(name):
                        merged.pop(relative, None)
            merged |= layer
        return merged


def config_layers(configs: ConfigsImage, *, node_id: int, texts: Mapping[str, str]) -> ConfigLayers:
    """Return the layers of node `node_id`, whose properties file says `texts`."""
    return ConfigLayers(
        node=dict(configs.of(ResourceType.BROKER, str(node_id)).items()),
        cluster=dict(configs.of_cluster().items()),
        static=texts,
    )


def default_text(name: str) -> str | None:
    """Return the default of a broker key as text, None where it has none."""
    definition = BROKER_CONFIGS.get(name)
    if definition is None or definition.is_required:
        return None
    return convert_to_text(default_value(definition))
