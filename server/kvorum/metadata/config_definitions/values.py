"""Parsing of configuration values from text, and their text form."""

import re
from collections.abc import Mapping

from kvorum.metadata.config_definitions.definition import ConfigDefinition, ConfigType
from kvorum.metadata.config_definitions.errors import InvalidConfigError, invalid_value
from kvorum.metadata.config_definitions.validators import ConfigValue, ListOf, value_text
from kvorum.wire.java_text import java_trim, parse_java_double, parse_java_integer

_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_type(definition: ConfigDefinition, text: str | None) -> ConfigValue:
    """Read `text` as the type of `definition`, without a check of its limits."""
    if text is None:
        return None
    trimmed = java_trim(text)
    match definition.type:
        case ConfigType.BOOLEAN:
            return _parse_boolean(definition, text, trimmed)
        case ConfigType.LIST:
            return parse_list(trimmed)
        case ConfigType.STRING | ConfigType.PASSWORD | ConfigType.CLASS:
            return trimmed
        case ConfigType.DOUBLE | ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_number(definition, text, trimmed)


def parse_value(definition: ConfigDefinition, text: str | None) -> ConfigValue:
    """Read `text` as a value of `definition` and check its limits.

    Raises InvalidConfigError with the message of Kafka's ConfigDef for the same text. One
    difference: a class is not loaded; its name is the value.
    """
    value = parse_type(definition, text)
    if isinstance(definition.validator, ListOf) and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))
    if definition.validator is not None:
        definition.validator.check(definition.name, value)
    return value


def default_value(definition: ConfigDefinition) -> ConfigValue:
    """Return the parsed default; InvalidConfigError for a required key."""
    if definition.is_required:
        raise InvalidConfigError(
            f'Missing required configuration "{definition.name}" which has no default value.'
        )
    return parse_type(definition, definition.default)


def parse_all(
    definitions: Mapping[str, ConfigDefinition], texts: Mapping[str, str]
) -> dict[str, ConfigValue]:
    """Read every key of `definitions` from `texts`, or its default; raise the first error."""
    return {
        name: parse_value(definition, texts[name]) if name in texts else default_value(definition)
        for name, definition in definitions.items()
    }


def parse_list(text: str) -> tuple[str, ...]:
    """Split a comma separated list as Kafka does: without spaces at commas, with empty words."""
    return tuple(_COMMA.split(text)) if text else ()


def convert_to_text(value: ConfigValue) -> str | None:
    """Write a parsed value the way DescribeConfigs shows it."""
    match value:
        case None:
            return None
        case tuple():
            return ",".join(value)
        case _:
            return value_text(value)


def _parse_boolean(definition: ConfigDefinition, text: str, trimmed: str) -> bool:
    match trimmed.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            reason = "Expected value to be either true or false"
            raise invalid_value(definition.name, text, reason)


def _parse_number(definition: ConfigDefinition, text: str, trimmed: str) -> int | float:
    try:
        if definition.type is ConfigType.DOUBLE:
            return parse_java_double(trimmed)
        return parse_java_integer(trimmed, bits=_INTEGER_BITS[definition.type])
    except ValueError:
        reason = f"Not a number of type {definition.type.name}"
        raise invalid_value(definition.name, text, reason) from None
