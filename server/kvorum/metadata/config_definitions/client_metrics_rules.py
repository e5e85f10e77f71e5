"""Rules for a client metrics subscription."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.tables import CLIENT_METRICS_CONFIGS
from kvorum.metadata.config_definitions.values import parse_all

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


def validate_client_metrics_configs(subscription: str, new: Mapping[str, str]) -> None:
    """Check the name and the planned texts of a subscription; InvalidConfigError if refused."""
    if not subscription:
        raise InvalidConfigError("Subscription name can't be empty", is_invalid_request=True)
    for name in new:
        if name not in CLIENT_METRICS_CONFIGS:
            message = f"Unknown client metrics configuration: {name}"
            raise InvalidConfigError(message, is_invalid_request=True)
    values = parse_all(CLIENT_METRICS_CONFIGS, new)
    interval_ms, patterns = values["interval.ms"], values["match"]
    assert isinstance(interval_ms, int)
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
