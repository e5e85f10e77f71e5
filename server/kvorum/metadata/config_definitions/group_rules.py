"""Rules for a group's configuration: known names, limits, and the bounds the broker keys set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.synonyms import broker_value, group_defaults
from kvorum.metadata.config_definitions.tables import GROUP_CONFIGS
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import parse_value

# In the order in which Kafka checks: group key, lower bound key, upper bound key; None is no bound.
_BOUNDS: Final[tuple[tuple[str, str | None, str | None], ...]] = (
    (
        "consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    (
        "share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    (
        "share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    (
        "share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    (
        "streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    (
        "streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    ("streams.num.standby.replicas", None, "group.streams.max.standby.replicas"),
    (
        "streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    ("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", None),
    ("streams.num.warmup.replicas", None, "group.streams.max.warmup.replicas"),
)
_ASSIGNOR_NAME: Final = "streams.assignor.name"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"


def validate_group_configs(new: Mapping[str, str], *, broker_texts: Mapping[str, str]) -> None:
    """Check the planned texts of a group; `broker_texts` are the controller's own settings.

    Raises InvalidConfigError for the first error that Kafka finds.
    """
    for name in new:
        if name not in GROUP_CONFIGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    _check_tags_differ(new.get(_TAGS, ""))
    values = {name: parse_value(GROUP_CONFIGS[name], text) for name, text in new.items()}
    for name, lower_key, upper_key in _BOUNDS:
        if name in values:
            _check_bounds(
                name,
                _number(values[name]),
                None if lower_key is None else _number(broker_value(lower_key, broker_texts)),
                None if upper_key is None else _number(broker_value(upper_key, broker_texts)),
            )
    if _ASSIGNOR_NAME in values:
        known = broker_value("group.streams.assignors", broker_texts)
        _check_assignor(values[_ASSIGNOR_NAME], known)
    all_values = {**group_defaults(broker_texts), **values}
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        is_changed = session in values or heartbeat in values
        if is_changed and _number(all_values[session]) <= _number(all_values[heartbeat]):
            raise InvalidConfigError(f"{session} must be greater than {heartbeat}")
    if new.get(_DEAD_LETTERS, "").startswith("__"):
        raise InvalidConfigError(f"{_DEAD_LETTERS}: DLQ topic name must not start with '__'")


def _check_tags_differ(text: str) -> None:
    tags = re.split(r"\s*,\s*", text.strip()) if text.strip() else []
    if len(set(tags)) < len(tags):
        raise InvalidConfigError(f"{_TAGS} must not contain duplicate tag keys.")


def _check_assignor(name: ConfigValue, known: ConfigValue) -> None:
    assert isinstance(known, tuple)
    if name not in known:
        raise InvalidConfigError(
            f"{_ASSIGNOR_NAME} '{name}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(map(str, known))}]."
        )


def _number(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value


def _check_bounds(name: str, value: int, lower: int | None, upper: int | None) -> None:
    is_low = lower is not None and value < lower
    is_high = upper is not None and value > upper
    if not (is_low or is_high):
        return
    if lower is not None and upper is not None:
        raise InvalidConfigError(f"{name} must be in the range {lower} to {upper} inclusive.")
    relation, bound = ("greater", lower) if is_low else ("less", upper)
    raise InvalidConfigError(f"{name} must be {relation} than or equal to {bound}")
