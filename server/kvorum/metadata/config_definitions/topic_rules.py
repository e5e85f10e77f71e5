"""Rules for a topic's configuration as a whole: names, limits, keys against each other."""

from __future__ import annotations

from collections.abc import Mapping

from kvorum.metadata.config_definitions.errors import InvalidConfigError, invalid_value
from kvorum.metadata.config_definitions.tables import TOPIC_CONFIGS
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import default_value, parse_value

_LIKE_RETENTION = -2
_UNLIMITED = -1


def validate_topic_configs(
    new: Mapping[str, str],
    *,
    existing: Mapping[str, str],
    defaults: Mapping[str, ConfigValue],
    is_remote_storage_enabled: bool = False,
) -> None:
    """Check the planned texts of a topic, as the controller does before it writes them.

    `new` and `existing` are the topic's own texts after and before the change; `defaults` are the
    values that broker keys give a topic (`synonyms.topic_defaults`). Raises InvalidConfigError for
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


def _number(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


def _check_compaction_lags(values: Mapping[str, ConfigValue]) -> None:
    shortest = _number(values, "min.compaction.lag.ms")
    longest = _number(values, "max.compaction.lag.ms")
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
    whole, local = _number(values, whole_key), _number(values, local_key)
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
    local = _number(values, f"local.retention.{unit}")
    if local not in {_LIKE_RETENTION, _number(values, f"retention.{unit}")}:
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
