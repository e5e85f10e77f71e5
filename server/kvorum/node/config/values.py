"""The parsed values of a node's keys, asked for by name and type."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    ConfigDefinition,
    ConfigValue,
    ValueOf,
    parse_all,
    parse_value,
)
from kvorum.node.config.errors import config_errors
from kvorum.node.config.own_settings import OWN_DEFINITIONS
from kvorum.node.config.security import AUTHORIZER_DEFINITIONS

NODE_CONFIGS: Final[Mapping[str, ConfigDefinition]] = MappingProxyType(
    {**BROKER_CONFIGS, **{each.name: each for each in (*AUTHORIZER_DEFINITIONS, *OWN_DEFINITIONS)}}
)
"""The keys of a node's properties file: Kafka's, its authorizer's, and kvorum's own."""


def listener_prefix(listener: str) -> str:
    """Return what is before the keys of one listener."""
    return f"listener.name.{listener.lower()}."


def mechanism_key(mechanism: str, key: str) -> str:
    """Return a key of one mechanism, without the prefix of its listener."""
    return f"{mechanism.lower()}.{key}"


class NodeValues:
    """Every key of a node with its value from `texts`, else its default."""

    __slots__ = ("_values", "texts", "value_of")

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        with config_errors():
            self._values: Mapping[str, ConfigValue] = parse_all(NODE_CONFIGS, texts)
        self.value_of = self._values.__getitem__

    def is_set(self, name: str) -> bool:
        """Return whether the texts contain the key, so that its default is not used."""
        return name in self.texts

    def integer(self, name: str) -> int:
        """Return the integer of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        """Return the text of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return the list of a key, which is empty if it has no value."""
        value = self._values[name] or ()
        assert isinstance(value, tuple)
        return value

    def of_listener(self, listener: str) -> ValueOf:
        """Return what reads a key of Kafka's: the listener's own value, else that of the node.

        It raises ConfigError for a value of the listener's own that is not valid.
        """
        return self._preferring(listener_prefix(listener), self.value_of)

    def of_mechanism(self, listener: str, mechanism: str) -> ValueOf:
        """Return what reads a key of Kafka's: the mechanism's own value, else the listener's.

        It raises ConfigError for a value that is not valid.
        """
        prefix = listener_prefix(listener) + mechanism_key(mechanism, "")
        return self._preferring(prefix, self.of_listener(listener))

    def _preferring(self, prefix: str, otherwise: ValueOf) -> ValueOf:
        """Return what reads the key with a prefix, and without one of it asks `otherwise`."""

        def value_of(key: str) -> ConfigValue:
            own = self.texts.get(prefix + key)
            if own is None:
                return otherwise(key)
            with config_errors():
                return parse_value(NODE_CONFIGS[key], own)

        return value_of
