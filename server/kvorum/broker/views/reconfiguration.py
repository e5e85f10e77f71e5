"""Kafka's checks of a broker's new dynamic values, by the parts that are to take them.

Most of them compare a new value with the one in force (DynamicThreadPool, LogCleaner).
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.config_definitions import (
    CONNECTIONS_OF_ADDRESSES,
    InvalidConfigError,
    broker_value,
    check_cleaner_memory,
    check_connections_per_address,
    check_cordoned_directories,
    check_log_times,
    connections_of_addresses,
)
from kvorum.metadata.config_definitions.cleaner_bounds import CLEANER_THREADS

FETCHER_COUNT: Final = "num.replica.fetchers"
CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_THREAD_POOLS: Final = (
    "num.io.threads",
    FETCHER_COUNT,
    "num.recovery.threads.per.data.dir",
    "background.threads",
)
_CLEANER_ENABLED: Final = "log.cleaner.enable"
_CLEANER_KEYS: Final = (
    CLEANER_THREADS,
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "message.max.bytes",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.backoff.ms",
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
    old, new = before.texts(), after.texts()
    value_of = partial(broker_value, texts=new)
    try:
        connections_of_addresses(new.get(CONNECTIONS_OF_ADDRESSES, ""))
    except InvalidConfigError as error:
        raise invalid_request(error.message) from error
    try:
        check_log_times(new)
        check_cleaner_memory(value_of)
        check_cordoned_directories(value_of)
        check_connections_per_address(value_of)
    except InvalidConfigError as error:
        raise invalid_request(f"requirement failed: {error.message}") from error
    for name in _THREAD_POOLS:
        _check_thread_pool(_Change(name, _number(name, old), _number(name, new)))
    is_cleaner_changed = any(
        broker_value(name, old) != broker_value(name, new) for name in _CLEANER_KEYS
    )
    if is_cleaner_changed and broker_value(_CLEANER_ENABLED, new):
        name = CLEANER_THREADS
        _check_cleaner_threads(_Change(name, _number(name, old), _number(name, new)))


def _check_thread_pool(change: _Change) -> None:
    failed = f"Dynamic thread count update validation failed for {change.name}={change.after}"
    if change.is_too_small:
        raise invalid_dynamic_configuration(
            f"{failed}, value should be at least half the current value {change.before}"
        )
    if change.is_too_large:
        raise invalid_dynamic_configuration(
            f"{failed}, value should not be greater than double the current value {change.before}"
        )


def _check_cleaner_threads(change: _Change) -> None:
    if change.after < 1:
        raise invalid_dynamic_configuration("Log cleaner threads should be at least 1")
    if change.is_too_small:
        raise invalid_dynamic_configuration(
            "Log cleaner threads cannot be reduced to less than half the current value "
            f"{change.before}"
        )
    if change.is_too_large:
        raise invalid_dynamic_configuration(
            "Log cleaner threads cannot be increased to more than double the current value "
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
    return _number(name, layers.texts())


def _number(name: str, texts: Mapping[str, str]) -> int:
    value = broker_value(name, texts)
    assert isinstance(value, int)
    return value
