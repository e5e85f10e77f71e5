"""What DescribeConfigs tells about a resource: each key's value, and where the value comes from.

Pure: the texts of every layer come in, entries come out. `BrokerLayers` holds the three layers of
broker keys, strongest first: this broker's dynamic ones, the cluster-wide dynamic ones, and the
static ones of the properties file (with the defaults below them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

from kvorum.metadata.config_definitions.definition import ConfigDefinition
from kvorum.metadata.config_definitions.synonyms import (
    broker_definition,
    broker_synonyms,
    group_defaults,
    group_synonym,
    topic_defaults,
    topic_synonym,
)
from kvorum.metadata.config_definitions.tables import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
)
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import convert_to_text, default_value, parse_value

_UNKNOWN_TYPE = 0


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers of the protocol."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A key that can give the value, with the text it has in one layer."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """One entry of a DescribeConfigs answer.

    `synonyms` are always filled in, the strongest first; an answer shows them only on request, and
    so the documentation. The value of a sensitive key is None. `type` 0 is "unknown".
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    type: int
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """The layers of broker keys as texts, see the module's docstring."""

    static: Mapping[str, str] = field(default_factory=_nothing)
    dynamic_default: Mapping[str, str] = field(default_factory=_nothing)
    dynamic: Mapping[str, str] = field(default_factory=_nothing)

    def effective(self) -> dict[str, str]:
        """Return the texts that are in force, defaults left out."""
        return {**self.static, **self.dynamic_default, **self.dynamic}


def describe_topic(own: Mapping[str, str], layers: BrokerLayers) -> Iterator[DescribedConfig]:
    """Yield every topic key, internal ones only if set; `own` are the topic's own texts."""
    defaults = topic_defaults(layers.effective())
    for definition in TOPIC_CONFIGS.values():
        if not definition.is_internal or definition.name in own:
            behind = topic_synonym(definition.name)
            below = () if behind is None else _layered(behind, layers)
            value = _own_or_default(definition, own, defaults)
            yield _entry(definition, value, own, ConfigSource.TOPIC_CONFIG, below)


def describe_group(own: Mapping[str, str], layers: BrokerLayers) -> Iterator[DescribedConfig]:
    """Yield every group key; `own` are the group's own texts."""
    defaults = group_defaults(layers.effective())
    for definition in GROUP_CONFIGS.values():
        below: tuple[ConfigSynonym, ...]
        behind = group_synonym(definition.name)
        if behind is None:
            text = convert_to_text(default_value(definition))
            below = (ConfigSynonym(definition.name, text, ConfigSource.DEFAULT_CONFIG),)
        else:
            below = _layered(behind, layers)
        value = _own_or_default(definition, own, defaults)
        yield _entry(definition, value, own, ConfigSource.GROUP_CONFIG, below)


def describe_client_metrics(own: Mapping[str, str]) -> Iterator[DescribedConfig]:
    """Yield every key of a subscription; `own` are its own texts."""
    for definition in CLIENT_METRICS_CONFIGS.values():
        value = _own_or_default(definition, own, {})
        yield _entry(definition, value, own, ConfigSource.CLIENT_METRICS_CONFIG, ())


def describe_broker(layers: BrokerLayers) -> Iterator[DescribedConfig]:
    """Yield every key of one broker: all that Kafka defines, and others that were set."""
    effective = layers.effective()
    names = [name for name, key in BROKER_CONFIGS.items() if not key.is_internal]
    names += sorted(effective.keys() - BROKER_CONFIGS.keys())
    names += sorted(
        name for name in effective if name in BROKER_CONFIGS and BROKER_CONFIGS[name].is_internal
    )
    for name in names:
        yield _broker_entry(name, _broker_text(name, effective), _layered(name, layers))


def describe_cluster_default(layers: BrokerLayers) -> Iterator[DescribedConfig]:
    """Yield the cluster-wide dynamic keys: the BROKER resource with the empty name."""
    for name, text in layers.dynamic_default.items():
        only = BrokerLayers(dynamic_default=layers.dynamic_default)
        synonyms = tuple(
            each
            for each in _layered(name, only)
            if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        )
        yield _broker_entry(name, text, synonyms)


def _own_or_default(
    definition: ConfigDefinition, own: Mapping[str, str], defaults: Mapping[str, ConfigValue]
) -> ConfigValue:
    if definition.name in own:
        return parse_value(definition, own[definition.name])
    return defaults.get(definition.name, default_value(definition))


def _entry(
    definition: ConfigDefinition,
    value: ConfigValue,
    own: Mapping[str, str],
    own_source: ConfigSource,
    below: Iterable[ConfigSynonym],
) -> DescribedConfig:
    text = convert_to_text(value)
    synonyms = tuple(below)
    if definition.name in own:
        synonyms = (ConfigSynonym(definition.name, text, own_source), *synonyms)
    return DescribedConfig(
        name=definition.name,
        value=text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=definition.is_sensitive,
        is_read_only=False,
        type=int(definition.type),
        synonyms=synonyms,
        documentation=definition.documentation,
    )


def _broker_text(name: str, effective: Mapping[str, str]) -> str | None:
    """Return the text in force; of a public key of Kafka's, as its parsed value is written."""
    definition = BROKER_CONFIGS.get(name)
    if definition is None or definition.is_internal:
        return effective.get(name)
    if name in effective:
        return convert_to_text(parse_value(definition, effective[name]))
    return None if definition.is_required else convert_to_text(default_value(definition))


def _broker_entry(
    name: str, text: str | None, synonyms: tuple[ConfigSynonym, ...]
) -> DescribedConfig:
    definition = broker_definition(name)
    # A key of unknown type might hold a secret.
    is_sensitive = definition is None or definition.is_sensitive
    return DescribedConfig(
        name=name,
        value=None if is_sensitive else text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=is_sensitive,
        is_read_only=not _is_dynamic(name),
        type=_UNKNOWN_TYPE if definition is None else int(definition.type),
        synonyms=synonyms,
        documentation=None if definition is None else definition.documentation,
    )


def _is_dynamic(name: str) -> bool:
    definition = BROKER_CONFIGS.get(name) or (
        broker_definition(name) if broker_synonyms(name) == (name,) else None
    )
    return definition is not None and not definition.is_read_only


def _layered(name: str, layers: BrokerLayers) -> tuple[ConfigSynonym, ...]:
    """Return what each layer says about a broker key and its synonyms, the strongest first."""
    definition = broker_definition(name)
    is_sensitive = definition is None or definition.is_sensitive
    names = broker_synonyms(name)
    found = [
        ConfigSynonym(each, None if is_sensitive else texts[each], source)
        for texts, source in (
            (layers.dynamic, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (layers.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (layers.static, ConfigSource.STATIC_BROKER_CONFIG),
        )
        for each in names
        if each in texts
    ]
    found += _defaults(names, is_sensitive=is_sensitive)
    # Stronger keys do not count for the weaker one they override.
    while found and found[0].name != name:
        found.pop(0)
    return tuple(found)


def _defaults(names: Iterable[str], *, is_sensitive: bool) -> Iterator[ConfigSynonym]:
    for name in names:
        definition = BROKER_CONFIGS.get(name)
        if definition is None or definition.is_required:
            continue
        text = convert_to_text(default_value(definition))
        if text is not None:
            value = None if is_sensitive else text
            yield ConfigSynonym(name, value, ConfigSource.DEFAULT_CONFIG)
