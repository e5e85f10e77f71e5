"""Rules for a group's configuration: known names, limits, and the bounds the broker keys set."""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.synonyms import broker_value, group_defaults
from kvorum.metadata.config_definitions.tables import GROUP_CONFIGS
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import default_value, parse_value

# In the order in which Kafka checks: group key, lower bound key, upper bound key.
_BOUNDS = (
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
)


def validate_group_configs(new: Mapping[str, str], *, broker_texts: Mapping[str, str]) -> None:
    """Check the planned texts of a group; `broker_texts` are the controller's own settings.

    Raises InvalidConfigError for the first error that Kafka finds.
    """
    for name in new:
        if name not in GROUP_CONFIGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    defaults = group_defaults(broker_texts)
    values = {
        name: parse_value(definition, new[name])
        if name in new
        else defaults.get(name, default_value(definition))
        for name, definition in GROUP_CONFIGS.items()
    }
    for name, lower_key, upper_key in _BOUNDS:
        _check_bound(values, name, lower_key, broker_texts, is_lower=True)
        _check_bound(values, name, upper_key, broker_texts, is_lower=False)
    for kind in ("consumer", "share", "streams"):
        _check_session_outlasts_heartbeat(values, kind)


def _number(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value


def _check_bound(
    values: Mapping[str, ConfigValue],
    name: str,
    bound_key: str | None,
    broker_texts: Mapping[str, str],
    *,
    is_lower: bool,
) -> None:
    if bound_key is None:
        return
    value, bound = _number(values[name]), _number(broker_value(bound_key, broker_texts))
    if (value < bound) if is_lower else (value > bound):
        relation = "greater" if is_lower else "less"
        raise InvalidConfigError(f"{name} must be {relation} than or equal to {bound_key}")


def _check_session_outlasts_heartbeat(values: Mapping[str, ConfigValue], kind: str) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if _number(values[session]) <= _number(values[heartbeat]):
        raise InvalidConfigError(f"{session} must be greater than {heartbeat}")
