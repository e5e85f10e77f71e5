"""Rules for the configurations of topics, groups and client metrics subscriptions as a whole."""

import re
from collections.abc import Mapping
from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError, invalid_value
from kvorum.metadata.config_definitions.tables import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    broker_value,
    group_defaults,
)
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import default_value, parse_all, parse_value

_LIKE_RETENTION = -2
_UNLIMITED = -1
_BOUNDED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
    "streams.task.offset.interval.ms",
    "streams.num.warmup.replicas",
)
"""The group keys that broker keys bound, in the order in which Kafka checks them."""
_ASSIGNOR_NAME: Final = "streams.assignor.name"
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_TAGS: Final = "streams.rack.aware.assignment.tags"
_INTERVAL_MS_MIN, _INTERVAL_MS_MAX = 100, 3600000
_MATCH_NAMES = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def validate_topic_configs(
    new: Mapping[str, str],
    *,
    existing: Mapping[str, str],
    defaults: Mapping[str, ConfigValue],
    is_remote_storage_enabled: bool = False,
) -> None:
    """Check the planned texts of a topic, as the controller does before it writes them.

    `new` and `existing` are the topic's own texts after and before the change; `defaults` are the
    values that broker keys give a topic (`tables.topic_defaults`). Raises InvalidConfigError for
    the first error that Kafka finds.
    """
    for name in new:
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
    values = {
        name: parse_value(definition, new[name])
        if name in new
        else defaults.get(name, default_value(definition))
        for name, definition in TOPIC_CONFIGS.items()
    }
    _check_compaction_lags(values)
    if values["remote.storage.enable"]:
        _check_remote_storage(values, is_remote_storage_enabled=is_remote_storage_enabled)
    elif existing.get("remote.storage.enable", "").lower() == "true":
        _check_switching_off(values)


def _number(value: ConfigValue) -> int:
    assert isinstance(value, int)
    return value


def _check_compaction_lags(values: Mapping[str, ConfigValue]) -> None:
    shortest = _number(values["min.compaction.lag.ms"])
    longest = _number(values["max.compaction.lag.ms"])
    if shortest > longest:
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )


def _check_remote_storage(
    values: Mapping[str, ConfigValue], *, is_remote_storage_enabled: bool
) -> None:
    if not is_remote_storage_enabled:
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if values["cleanup.policy"] not in {(), ("delete",)}:
        raise InvalidConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or "
            "cleanup.policy being an empty list."
        )
    for unit in ("bytes", "ms"):
        _check_local_retention(values, unit)
    if values["remote.log.copy.disable"]:
        for unit in ("bytes", "ms"):
            _check_equal_retention(values, unit)


def _check_local_retention(values: Mapping[str, ConfigValue], unit: str) -> None:
    """Refuse a local retention that is longer than the whole one, or unlimited when that is not."""
    whole_key, local_key = f"retention.{unit}", f"local.retention.{unit}"
    whole, local = _number(values[whole_key]), _number(values[local_key])
    is_limited = whole > _UNLIMITED if unit == "bytes" else whole != _UNLIMITED
    if not is_limited or local == _LIKE_RETENTION:
        return
    if local == _UNLIMITED:
        reason = f"Value must not be -1 as {whole_key} value is set as {whole}."
        raise invalid_value(local_key, str(local), reason)
    if local > whole:
        reason = f"Value must not be more than {whole_key} property value: {whole}"
        raise invalid_value(local_key, str(local), reason)


def _check_equal_retention(values: Mapping[str, ConfigValue], unit: str) -> None:
    local = _number(values[f"local.retention.{unit}"])
    if local not in {_LIKE_RETENTION, _number(values[f"retention.{unit}"])}:
        raise InvalidConfigError(
            f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and "
            f"`retention.{unit}` must be set to the identical value because there will be no more "
            "logs copied to the remote storage."
        )


def _check_switching_off(values: Mapping[str, ConfigValue]) -> None:
    if not values["remote.log.delete.on.disable"]:
        raise InvalidConfigError(
            "It is invalid to disable remote storage without deleting remote data. If you want to "
            "keep the remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable "
            "remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )


def validate_group_configs(new: Mapping[str, str], *, broker_texts: Mapping[str, str]) -> None:
    """Check the planned texts of a group; `broker_texts` are the controller's own settings.

    Raises InvalidConfigError for the first error that Kafka finds.
    """
    for name in new:
        if name not in GROUP_CONFIGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    _check_tags_differ(new.get(_TAGS, ""))
    values = {name: parse_value(GROUP_CONFIGS[name], text) for name, text in new.items()}
    for name in _BOUNDED:
        if name in values:
            lower, upper = (_bound(name, side, broker_texts) for side in ("min", "max"))
            _check_bounds(name, _number(values[name]), lower, upper)
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


def _bound(name: str, side: str, broker_texts: Mapping[str, str]) -> int | None:
    """Return the value of the broker key that is the bound of a group key; None without one."""
    kind, _, rest = name.partition(".")
    key = f"group.{kind}.{side}.{rest.removeprefix('num.')}"
    return _number(broker_value(key, broker_texts)) if key in BROKER_CONFIGS else None


def _check_bounds(name: str, value: int, lower: int | None, upper: int | None) -> None:
    is_low = lower is not None and value < lower
    is_high = upper is not None and value > upper
    if not (is_low or is_high):
        return
    if lower is not None and upper is not None:
        raise InvalidConfigError(f"{name} must be in the range {lower} to {upper} inclusive.")
    relation, bound = ("greater", lower) if is_low else ("less", upper)
    raise InvalidConfigError(f"{name} must be {relation} than or equal to {bound}")


def validate_client_metrics_configs(subscription: str, new: Mapping[str, str]) -> None:
    """Check the name and the planned texts of a subscription; InvalidConfigError if refused."""
    if not subscription:
        raise InvalidConfigError("Subscription name can't be empty", is_invalid_request=True)
    for name in new:
        if name not in CLIENT_METRICS_CONFIGS:
            message = f"Unknown client metrics configuration: {name}"
            raise InvalidConfigError(message, is_invalid_request=True)
    values = parse_all(CLIENT_METRICS_CONFIGS, new)
    interval_ms, patterns = _number(values["interval.ms"]), values["match"]
    assert isinstance(patterns, tuple)
    if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        raise InvalidConfigError(
            f"Invalid value {interval_ms} for interval.ms, interval must be between 100 and "
            "3600000 (1 hour)",
            is_invalid_request=True,
        )
    for pattern in patterns:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    parts = pattern.rstrip("=").split("=")
    if len(parts) == 2 and parts[0].strip() in _MATCH_NAMES and _is_expression(parts[1].strip()):
        return
    raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
