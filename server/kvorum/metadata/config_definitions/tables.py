"""The tables of configuration keys, and the synonyms: broker keys behind others."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from kvorum.metadata.config_definitions.broker_rows import BROKER_ROWS
from kvorum.metadata.config_definitions.definition import ConfigDefinition
from kvorum.metadata.config_definitions.documentation import DOCUMENTATION
from kvorum.metadata.config_definitions.other_rows import (
    CLIENT_METRICS_ROWS,
    DYNAMIC_ONLY_BROKER_ROWS,
    GROUP_ROWS,
)
from kvorum.metadata.config_definitions.synonym_rows import GROUP_SYNONYMS, TOPIC_SYNONYMS
from kvorum.metadata.config_definitions.topic_rows import TOPIC_ROWS
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import default_value, parse_value

_FAMILIES = tuple(
    tuple(name for name, _ in synonyms) for synonyms in TOPIC_SYNONYMS.values() if len(synonyms) > 1
)
_OF_ITSELF = "log.flush.scheduler.interval.ms"
"""A key that gives another its value, and takes none from it."""
_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)\Z")
_MECHANISM_KEYS = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
_UNLIMITED = -1


def _table(
    rows: Iterable[ConfigDefinition], documentation: Mapping[str, str]
) -> Mapping[str, ConfigDefinition]:
    return MappingProxyType(
        {
            row.name: replace(row, documentation=documentation[row.name])
            if row.name in documentation
            else row
            for row in rows
        }
    )


# Each in the order in which Kafka defines the keys, which is the order of its checks.
TOPIC_CONFIGS = _table(TOPIC_ROWS, DOCUMENTATION["topic"])
BROKER_CONFIGS = _table(BROKER_ROWS, DOCUMENTATION["broker"])
# Keys that only exist as dynamic values, never in a properties file.
DYNAMIC_ONLY_BROKER_CONFIGS = _table(DYNAMIC_ONLY_BROKER_ROWS, DOCUMENTATION["broker"])
GROUP_CONFIGS = _table(GROUP_ROWS, DOCUMENTATION["group"])
CLIENT_METRICS_CONFIGS = _table(CLIENT_METRICS_ROWS, DOCUMENTATION["client_metrics"])


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return the broker keys that can give `name` its value, in order of precedence."""
    for family in _FAMILIES:
        if name in family and name != _OF_ITSELF:
            return family
    if match := _LISTENER_KEY.match(name):
        base = match[1]
        return (name, next((key for key in _MECHANISM_KEYS if base.endswith(key)), base))
    return (name,)


def broker_definition(name: str) -> ConfigDefinition | None:
    """Return the definition of a broker key, with or without the prefix ``listener.name.X.``."""
    for candidate in (name, *broker_synonyms(name)):
        found = BROKER_CONFIGS.get(candidate) or DYNAMIC_ONLY_BROKER_CONFIGS.get(candidate)
        if found is not None:
            return found
    return None


def topic_synonym(topic_key: str) -> str | None:
    """Return the first broker key that a topic key falls back to, None without one."""
    synonyms = TOPIC_SYNONYMS.get(topic_key)
    return synonyms[0][0] if synonyms else None


def group_synonym(group_key: str) -> str | None:
    """Return the broker key that a group key falls back to, None without one."""
    return GROUP_SYNONYMS.get(group_key)


def broker_value(name: str, texts: Mapping[str, str]) -> ConfigValue:
    """Read the broker key `name` from `texts`, or its default."""
    definition = BROKER_CONFIGS[name]
    return parse_value(definition, texts[name]) if name in texts else default_value(definition)


def topic_defaults(broker_texts: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the values of topic keys that a topic does not set, from a broker's own texts.

    Hours and minutes become milliseconds; a negative ``log.retention.*`` becomes -1. Topic keys
    without a broker key are absent.
    """
    return {key: _topic_default(key, broker_texts) for key in TOPIC_SYNONYMS}


def _topic_default(topic_key: str, broker_texts: Mapping[str, str]) -> ConfigValue:
    for name, factor in TOPIC_SYNONYMS[topic_key]:
        value = broker_value(name, broker_texts)
        if value is None:
            continue
        if factor != 1:
            assert isinstance(value, int)
            value *= factor
        is_negative = isinstance(value, int) and value < 0
        return _UNLIMITED if topic_key == "retention.ms" and is_negative else value
    return None


def group_defaults(broker_texts: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the values of group keys that a group does not set, from a broker's own texts."""
    return {
        key: broker_value(name, broker_texts)
        for key, name in GROUP_SYNONYMS.items()
        if name is not None
    }
