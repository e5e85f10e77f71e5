"""The values of its own that a resource has in the metadata: a group, a broker, the cluster."""

from collections.abc import Mapping

from kvorum.metadata.config_definitions import ConfigDefinition, InvalidConfigError, parse_value


def own_value(definition: ConfigDefinition, texts: Mapping[str, str]) -> object | None:
    """Return the value of a key; None if it is not set, or set to a text that cannot be read.

    A controller writes any value of a broker's key to the log.
    """
    text = texts.get(definition.name)
    if text is None:
        return None
    try:
        return parse_value(definition, text)
    except InvalidConfigError:
        return None


def own_number(definition: ConfigDefinition, texts: Mapping[str, str]) -> int | None:
    """Return the value of a key of type INT, as `own_value` does."""
    value = own_value(definition, texts)
    if value is None:
        return None
    assert isinstance(value, int)
    return value


def default_value(definition: ConfigDefinition) -> object | None:
    """Return the value of a key that is not set."""
    return None if definition.default is None else parse_value(definition, definition.default)


def within(value: int, least: int, most: int) -> int:
    """Return the number within bounds that is nearest to a value (GroupConfig.evaluate)."""
    return min(max(value, least), most)
