"""Entries of DescribeConfigs for the configuration of one resource."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvorum.broker.views.config_layers import ConfigLayers, Synonym
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
    ConfigValue,
    UpdateMode,
    broker_definition,
    convert_to_text,
    default_value,
    group_defaults,
    group_synonym,
    parse_value,
    topic_defaults,
    topic_synonym,
)
from kvorum.metadata.effective_configs import ConfigSource
from kvorum.metadata.voters import TARGET_VOTERS

UNKNOWN_TYPE = 0
_TARGET_VOTERS: Final = ConfigDefinition(
    TARGET_VOTERS,
    ConfigType.STRING,
    None,
    update_mode=UpdateMode.CLUSTER_WIDE,
    documentation="The voters that the quorum of controllers is to have.",
)
"""The only key here that Kafka does not define."""


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One key: its effective value, and all values that it could have."""

    name: str
    value: str | None
    synonyms: tuple[Synonym, ...]
    is_read_only: bool
    definition: ConfigDefinition | None

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must not be shown; an unknown key might be a password."""
        return self.definition is None or self.definition.is_sensitive

    @property
    def source(self) -> ConfigSource:
        """The source of the effective value."""
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT

    @property
    def type(self) -> int:
        """The type's number in the response."""
        return UNKNOWN_TYPE if self.definition is None else int(self.definition.type)


def topic_entries(own: Mapping[str, str], layers: ConfigLayers) -> list[ConfigEntry]:
    """Return every key of a topic; `own` has the values that are set for the topic itself."""
    defaults = topic_defaults(layers.texts())
    return [
        _topic_entry(definition, own, defaults, layers)
        for name, definition in sorted(TOPIC_CONFIGS.items())
        if name in own or not definition.is_internal
    ]


def _topic_entry(
    definition: ConfigDefinition,
    own: Mapping[str, str],
    defaults: Mapping[str, ConfigValue],
    layers: ConfigLayers,
) -> ConfigEntry:
    name = definition.name
    if definition.is_internal and name in own:
        # Kafka shows the unchanged text of internal keys.
        value: str | None = own[name]
    else:
        value = convert_to_text(_value(definition, own, defaults))
    broker_key = topic_synonym(name)
    synonyms = layers.synonyms(broker_key) if broker_key else []
    return _entry(definition, own, value, synonyms, ConfigSource.TOPIC)


def group_entries(own: Mapping[str, str], layers: ConfigLayers) -> list[ConfigEntry]:
    """Return the keys of a group; `own` has the values that are set for the group itself.

    Internal keys are included where the group or the broker sets them.
    """
    texts = layers.texts()
    defaults = group_defaults(texts)
    entries: list[ConfigEntry] = []
    for name, definition in sorted(GROUP_CONFIGS.items()):
        broker_key = group_synonym(name)
        if definition.is_internal and name not in own and broker_key not in texts:
            continue
        value = convert_to_text(_value(definition, own, defaults))
        if broker_key is not None:
            synonyms = layers.synonyms(broker_key)
        else:
            default = convert_to_text(default_value(definition))
            synonyms = [] if default is None else [Synonym(name, default, ConfigSource.DEFAULT)]
        entries.append(_entry(definition, own, value, synonyms, ConfigSource.GROUP))
    return entries


def client_metrics_entries(own: Mapping[str, str]) -> list[ConfigEntry]:
    """Return every key of a client metrics subscription."""
    return [
        _entry(
            definition,
            own,
            convert_to_text(_value(definition, own, {})),
            [],
            ConfigSource.CLIENT_METRICS,
        )
        for _, definition in sorted(CLIENT_METRICS_CONFIGS.items())
    ]


def broker_entries(layers: ConfigLayers) -> list[ConfigEntry]:
    """Return every key of this node, and unknown keys that its properties file sets."""
    texts = layers.texts()
    known = [name for name, definition in BROKER_CONFIGS.items() if not definition.is_internal]
    return [_broker_entry(name, texts, layers.synonyms(name)) for name in sorted({*known, *texts})]


def cluster_entries(layers: ConfigLayers) -> list[ConfigEntry]:
    """Return the keys that are set dynamically for all brokers."""
    return [
        _described(
            name,
            layers.cluster[name],
            [
                synonym
                for synonym in layers.synonyms(name)
                if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
            ],
        )
        for name in sorted(layers.cluster)
    ]


def _broker_entry(name: str, texts: Mapping[str, str], synonyms: Iterable[Synonym]) -> ConfigEntry:
    value: str | None = texts.get(name)
    exact = BROKER_CONFIGS.get(name)
    if exact is not None and not exact.is_internal:
        if name in texts:
            value = convert_to_text(parse_value(exact, texts[name]))
        elif not exact.is_required:
            value = convert_to_text(default_value(exact))
    return _described(name, value, synonyms)


def _described(name: str, value: str | None, synonyms: Iterable[Synonym]) -> ConfigEntry:
    """Return the entry of a broker key, whose value is shown unchanged."""
    definition = _TARGET_VOTERS if name == TARGET_VOTERS else broker_definition(name)
    return ConfigEntry(
        name=name,
        value=value,
        synonyms=tuple(synonyms),
        # Kafka looks up the exact name, so that keys with a listener prefix are not found.
        is_read_only=definition is None or definition.name != name or definition.is_read_only,
        definition=definition,
    )


def _value(
    definition: ConfigDefinition, own: Mapping[str, str], defaults: Mapping[str, ConfigValue]
) -> ConfigValue:
    if definition.name in own:
        return parse_value(definition, own[definition.name])
    if definition.name in defaults:
        value = defaults[definition.name]
        if definition.validator is not None:
            # A broker key may allow values that the key of a topic or group does not allow.
            definition.validator.check(definition.name, value)
        return value
    return default_value(definition)


def _entry(
    definition: ConfigDefinition,
    own: Mapping[str, str],
    value: str | None,
    synonyms: Iterable[Synonym],
    own_source: ConfigSource,
) -> ConfigEntry:
    of_resource = (
        (Synonym(definition.name, value or "", own_source),) if definition.name in own else ()
    )
    return ConfigEntry(
        name=definition.name,
        value=value,
        synonyms=(*of_resource, *synonyms),
        is_read_only=False,
        definition=definition,
    )
