"""Kafka's checks of a broker's new dynamic values against those in force (DynamicThreadPool)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.config_definitions import broker_value

FETCHER_COUNT: Final = "num.replica.fetchers"
CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_THREAD_POOLS: Final = (
    "num.io.threads",
    FETCHER_COUNT,
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
_FACTOR_MAX: Final = 2
"""The factor by which the threads of a pool may become more, or fewer, in one change."""


class _Change(NamedTuple):
    """A number in force, and the one that is to take its place."""

    name: str
    before: int
    after: int

    @property
    def is_too_small(self) -> bool:
        """Whether the new number is less than half of the one in force."""
        return self.after < self.before // _FACTOR_MAX

    @property
    def is_too_large(self) -> bool:
        """Whether the new number is more than double the one in force."""
        return self.after > self.before * _FACTOR_MAX


def check_reconfiguration(before: ConfigLayers, after: ConfigLayers) -> None:
    """Raise `RequestError` unless a broker with the values of `before` could change to `after`."""
    for change in _changes(before, after, _THREAD_POOLS):
        failed = f"Dynamic thread count update validation failed for {change.name}={change.after}"
        if change.is_too_small:
            raise invalid_dynamic_configuration(
                f"{failed}, value should be at least half the current value {change.before}"
            )
        if change.is_too_large:
            raise invalid_dynamic_configuration(
                f"{failed}, value should not be greater than double the current value "
                f"{change.before}"
            )


def invalid_dynamic_configuration(problem: str) -> RequestError:
    """Return the refusal of values with which the parts of a broker cannot go on."""
    return invalid_request(
        f"Invalid value {CONFIG_EXCEPTION}: {problem} for configuration Invalid dynamic "
        "configuration"
    )


def number_of(name: str, layers: ConfigLayers) -> int:
    """Return the effective value of a broker key of type INT or LONG."""
    value = broker_value(name, layers.texts())
    assert isinstance(value, int)
    return value


def _changes(
    before: ConfigLayers, after: ConfigLayers, names: tuple[str, ...]
) -> Iterator[_Change]:
    """Yield the keys whose numbers are to change."""
    for name in names:
        change = _Change(name, number_of(name, before), number_of(name, after))
        if change.before != change.after:
            yield change
