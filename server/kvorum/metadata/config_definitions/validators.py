"""Limits of configuration values, as small comparable values.

Each validator has `check(name, value)`, which raises InvalidConfigError with Kafka's message. The
value is the parsed one: None, bool, int, float, str or a tuple of str for a list.
"""

import re
from typing import NamedTuple

from kvorum.metadata.config_definitions.endpoints import parse_bootstrap_server, parse_quorum_voters
from kvorum.metadata.config_definitions.errors import InvalidConfigError, invalid_value
from kvorum.wire.java_text import is_java_duration_from_zero, java_double_text

ConfigValue = bool | int | float | str | tuple[str, ...] | None

_THROTTLED_REPLICA = re.compile(r"(?:[0-9]+:[0-9]+)?\Z")


def value_text(value: ConfigValue) -> str:
    """Return a parsed value in the form of Java's messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return java_double_text(value)
        case tuple():
            return f"[{', '.join(value)}]"
        case _:
            return str(value)


class Range(NamedTuple):
    """A number between two limits; a limit of None is open."""

    minimum: int | float | None = None
    maximum: int | float | None = None

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse a missing number and one outside of the limits."""
        if value is None:
            raise invalid_value(name, "null", "Value must be non-null")
        assert isinstance(value, int | float)
        if self.minimum is not None and value < self.minimum:
            raise invalid_value(name, value_text(value), f"Value must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            reason = f"Value must be no more than {self.maximum}"
            raise invalid_value(name, value_text(value), reason)


class OneOf(NamedTuple):
    """One of a few words, exactly as written."""

    words: tuple[str, ...]

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse any other word."""
        if value not in self.words:
            reason = f"String must be one of: {', '.join(self.words)}"
            raise invalid_value(name, value_text(value), reason)


class OneOfIgnoringCase(NamedTuple):
    """One of a few words in any case; `words` in upper case."""

    words: tuple[str, ...]

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse any other word."""
        if not isinstance(value, str) or value.upper() not in self.words:
            reason = f"String must be one of (case insensitive): {', '.join(self.words)}"
            raise invalid_value(name, value_text(value), reason)


class ListOf(NamedTuple):
    """A list, of the given words only if there are any; parsing has removed duplicates before."""

    words: tuple[str, ...] = ()
    is_empty_allowed: bool = True
    is_null_allowed: bool = False

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse a missing or empty list where it is not allowed, and other words."""
        if value is None:
            if self.is_null_allowed:
                return
            raise InvalidConfigError(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, tuple)
        if not self.is_empty_allowed and not value:
            valid = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            raise InvalidConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {valid}"
            )
        for word in value:
            if not word:
                raise InvalidConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words:
                OneOf(self.words).check(name, word)


class NotNull:
    """Any value, as long as there is one."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse a missing value."""
        if value is None:
            raise invalid_value(name, "null", "entry must be non null")


class NotEmpty:
    """A word that is not empty; it may be missing."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse the empty word."""
        if value == "":
            raise invalid_value(name, "", "String must be non-empty")


class GzipLevel:
    """A gzip level: 1 to 9, or -1 for the library's own choice."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse any other number."""
        if value is None:
            raise invalid_value(name, "null", "Value must be non-null")
        assert isinstance(value, int)
        if value == -1 or 1 <= value <= 9:
            return
        reason = f"Value must be between 1 and 9 or equal to {-1}"
        raise invalid_value(name, value_text(value), reason)


class ThrottledReplicas:
    """Pairs ``partition:broker``, or the single word ``*``."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse anything else in the list."""
        assert isinstance(value, tuple)
        if all(_THROTTLED_REPLICA.match(word) for word in value) or "".join(value) == "*":
            return
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise invalid_value(name, value_text(value), reason)


class OffsetReset:
    """A share group's start: ``earliest``, ``latest`` or ``by_duration:`` with an ISO duration."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:
        """Refuse any other word."""
        assert isinstance(value, str)
        prefix, colon, duration = value.partition(":")
        if value in {"earliest", "latest"}:
            return
        if prefix == "by_duration" and colon and is_java_duration_from_zero(duration):
            return
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(name, value, reason)


class QuorumVoters:
    """Entries ``id@host:port`` of a static quorum."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:  # noqa: ARG002 - one signature for all
        """Refuse an entry that cannot be read."""
        assert isinstance(value, tuple)
        parse_quorum_voters(value, must_be_routable=False)


class BootstrapServers:
    """Entries ``host:port`` of the controllers to ask first."""

    __slots__ = ()

    def check(self, name: str, value: ConfigValue) -> None:  # noqa: ARG002 - one signature for all
        """Refuse an entry that cannot be read."""
        assert isinstance(value, tuple)
        for entry in value:
            parse_bootstrap_server(entry)


Validator = (
    Range
    | OneOf
    | OneOfIgnoringCase
    | ListOf
    | NotNull
    | NotEmpty
    | GzipLevel
    | ThrottledReplicas
    | OffsetReset
    | QuorumVoters
    | BootstrapServers
)
