"""The parsed values of every broker key, asked for by name and type."""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.metadata.config_definitions import BROKER_CONFIGS, ConfigValue, parse_all
from kvorum.node.config.errors import config_errors


class BrokerValues:
    """Every broker key of Kafka with its value from `texts`, else its default."""

    __slots__ = ("_values", "texts")

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        with config_errors():
            self._values: Mapping[str, ConfigValue] = parse_all(BROKER_CONFIGS, texts)

    def is_set(self, name: str) -> bool:
        """Return whether the texts contain the key, so that its default is not used."""
        return name in self.texts

    def integer(self, name: str) -> int:
        """Return the integer of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return the integer of a key, None if it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        """Return the number of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, float)
        return value

    def boolean(self, name: str) -> bool:
        """Return the boolean of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, bool)
        return value

    def text(self, name: str) -> str:
        """Return the text of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return the text of a key, None if it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, str)
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return the list of a key that always has a value."""
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def optional_words(self, name: str) -> tuple[str, ...] | None:
        """Return the list of a key, None if it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple)
        return value
