"""The keys that are kvorum's own; all begin with ``kvorum.``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions.endpoints import parse_host_port
from kvorum.node.config.errors import ConfigError, config_errors

METRICS_LISTENER: Final = "kvorum.metrics.listener"
DAMAGED_LOGS_SET_ASIDE: Final = "kvorum.damaged.logs.set.aside"
LOG_FORMAT: Final = "kvorum.log.format"
METADATA_TOPIC_READABLE: Final = "kvorum.metadata.topic.readable"
OWN_DOCUMENTATION: Final = MappingProxyType(
    {
        DAMAGED_LOGS_SET_ASIDE: (
            "false",
            "At a start, keep a damaged log as -stray and fetch it again from another leader.",
        ),
        LOG_FORMAT: (
            "text",
            "Format of the log: text for people, or json, one object per line, for machines.",
        ),
        METADATA_TOPIC_READABLE: (
            "false",
            "Let consumers read __cluster_metadata at this broker, with DESCRIBE on the cluster.",
        ),
        METRICS_LISTENER: (
            "empty",
            "host:port that serves /metrics, /healthz and /readyz over HTTP; no authentication.",
        ),
    }
)
"""The default value of each key, and its description."""
OWN_KEYS: Final = frozenset(OWN_DOCUMENTATION)


class LogFormat(Enum):
    """The format of log lines: text for people, or one JSON object per line."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """``kvorum.*``; `metrics_listener` is None if metrics are not served."""

    metrics_listener: Address | None
    log_format: LogFormat
    is_metadata_topic_readable: bool
    sets_damaged_logs_aside: bool


def own_settings(texts: Mapping[str, str]) -> OwnSettings:
    """Read ``kvorum.*``; raises ConfigError for an invalid value."""
    return OwnSettings(
        metrics_listener=_metrics_listener(texts.get(METRICS_LISTENER, "").strip()),
        log_format=_log_format(texts.get(LOG_FORMAT, LogFormat.TEXT.value).strip()),
        is_metadata_topic_readable=_is_true(METADATA_TOPIC_READABLE, texts),
        sets_damaged_logs_aside=_is_true(DAMAGED_LOGS_SET_ASIDE, texts),
    )


def _is_true(name: str, texts: Mapping[str, str]) -> bool:
    text = texts.get(name, "false").strip()
    if text.lower() not in {"true", "false"}:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: it must be true or false"
        )
    return text.lower() == "true"


def _metrics_listener(text: str) -> Address | None:
    if not text:
        return None
    with config_errors():
        address = parse_host_port(text)
    if address is None or not address.host:
        raise ConfigError(
            f"Invalid value {text} for configuration {METRICS_LISTENER}: it must be host:port, "
            "for instance 127.0.0.1:9404"
        )
    return address


def _log_format(text: str) -> LogFormat:
    try:
        return LogFormat(text)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {LOG_FORMAT}: it must be one of "
            f"{', '.join(each.value for each in LogFormat)}"
        ) from None
