"""The parsed values of every broker key, asked for by name and type."""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.metadata.config_definitions import BROKER_CONFIGS, ConfigValue, parse_all
from kvorum.node.config.errors import config_errors


class BrokerValues:
    """Every broker key of Kafka with the value that `texts` or its default gives it."""

    __slots__ = ("_values", "texts")

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        with config_errors():
            self._values: Mapping[str, ConfigValue] = parse_all(BROKER_CONFIGS, texts)

    def is_set(self, name: str) -> bool:
        """Tell whether the texts name the key themselves."""
        return name in self.texts

    def integer(self, name: str) -> int:
        """Return an integer that is always there."""
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return an integer, None where it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, int)
        return value

    def boolean(self, name: str) -> bool:
        """Return a boolean that is always there."""
        value = self._values[name]
        assert isinstance(value, bool)
        return value

    def text(self, name: str) -> str:
        """Return a text that is always there."""
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, None where it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, str)
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list that is always there."""
        value = self._values[name]
        assert isinstance(value, tuple)
        return value

    def optional_words(self, name: str) -> tuple[str, ...] | None:
        """Return a list, None where it is not set and has no default."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple)
        return value
