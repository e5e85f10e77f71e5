"""Kafka's rules for the broker keys of groups, which bound each other (GroupCoordinatorConfig).

The keys of share and streams groups are among them: they bound the configuration of single groups.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.settings import ValueOf
from kvorum.metadata.config_definitions.tables import broker_value

_SHARE: Final = "group.share."
_STREAMS: Final = "group.streams."
_KINDS: Final = ("group.consumer.", _SHARE, _STREAMS)
_DYNAMIC: Final = "assignment.interval.ms"
"""The end of the bounded keys that can change while a broker runs."""
_AT_LEAST: Final = "greater than or equal to"
_AT_MOST: Final = "less than or equal to"
_LESS: Final = "less than"
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = MappingProxyType(
    {_AT_LEAST: operator.ge, _AT_MOST: operator.le, _LESS: operator.lt}
)


class _Rule(NamedTuple):
    """A relation between the values of two keys, with Kafka's word for it."""

    key: str
    relation: str
    other: str

    def check(self, value_of: ValueOf) -> None:
        """Raise InvalidConfigError unless the values are in the relation."""
        value, bound = value_of(self.key), value_of(self.other)
        assert isinstance(value, int)
        assert isinstance(bound, int)
        if not _RELATIONS[self.relation](value, bound):
            raise InvalidConfigError(f"{self.key} must be {self.relation} {self.other}")


def check_group_bounds(value_of: ValueOf) -> None:
    """Raise InvalidConfigError for the first of a broker's keys that is out of its bounds."""
    for rule in _rules():
        rule.check(value_of)


def bounded_intervals(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the dynamic keys that are out of their bounds, each with the bound next to it.

    A controller writes any value to the log; a broker applies the bound instead of it.
    """
    found: dict[str, str] = {}
    for kind in _KINDS:
        name = kind + _DYNAMIC
        if name in texts:
            keys = name, f"{kind}min.{_DYNAMIC}", f"{kind}max.{_DYNAMIC}"
            value, least, most = (broker_value(key, texts) for key in keys)
            assert isinstance(value, int)
            assert isinstance(least, int)
            assert isinstance(most, int)
            if not least <= value <= most:
                found[name] = str(least if value < least else most)
    return found


def _rules() -> Iterator[_Rule]:
    """Yield the rules in the order of Kafka's checks."""
    for kind in _KINDS:
        yield from _between(kind, "heartbeat.interval.ms")
        yield from _between(kind, "session.timeout.ms")
        yield _Rule(f"{kind}heartbeat.interval.ms", _LESS, f"{kind}session.timeout.ms")
        yield from _between(kind, _DYNAMIC)
    yield _Rule(f"{_STREAMS}num.standby.replicas", _AT_MOST, f"{_STREAMS}max.standby.replicas")
    task_offset = "task.offset.interval.ms"
    yield _Rule(f"{_STREAMS}{task_offset}", _AT_LEAST, f"{_STREAMS}min.{task_offset}")
    yield _Rule(f"{_STREAMS}num.warmup.replicas", _AT_MOST, f"{_STREAMS}max.warmup.replicas")
    for name in ("delivery.count.limit", "partition.max.record.locks"):
        yield _Rule(f"{_SHARE}max.{name}", _AT_LEAST, f"{_SHARE}{name}")
        yield _Rule(f"{_SHARE}{name}", _AT_LEAST, f"{_SHARE}min.{name}")
    lock = "record.lock.duration.ms"
    yield _Rule(f"{_SHARE}{lock}", _AT_LEAST, f"{_SHARE}min.{lock}")
    yield _Rule(f"{_SHARE}max.{lock}", _AT_LEAST, f"{_SHARE}{lock}")
    yield _Rule(f"{_SHARE}max.share.sessions", _AT_LEAST, f"{_SHARE}max.size")


def _between(kind: str, name: str) -> Iterator[_Rule]:
    yield _Rule(f"{kind}max.{name}", _AT_LEAST, f"{kind}min.{name}")
    yield _Rule(f"{kind}{name}", _AT_LEAST, f"{kind}min.{name}")
    yield _Rule(f"{kind}{name}", _AT_MOST, f"{kind}max.{name}")
