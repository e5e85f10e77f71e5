"""The keys that are kvorum's own; all begin with ``kvorum.``."""

import logging
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Annotated, Final

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import ConfigDefinition, ConfigType, parse_host_port
from kvorum.node.config.errors import ConfigError, config_errors
from kvorum.security.allowed_url import ALLOWED_URLS

METRICS_LISTENER: Final = "kvorum.metrics.listener"
DAMAGED_LOGS_SET_ASIDE: Final = "kvorum.damaged.logs.set.aside"
LOG_FORMAT: Final = "kvorum.log.format"
LOG_LEVEL: Final = "kvorum.log.level"
METADATA_TOPIC_READABLE: Final = "kvorum.metadata.topic.readable"
LOG_LEVELS: Final = MappingProxyType(
    {
        "debug": logging.DEBUG,
        "info": logging.INFO,
        "warning": logging.WARNING,
        "error": logging.ERROR,
    }
)
OWN_DEFINITIONS: Final = tuple(
    ConfigDefinition(name, ConfigType.STRING, default, documentation=documentation)
    for name, default, documentation in (
        (
            DAMAGED_LOGS_SET_ASIDE,
            "false",
            "At a start, keep a damaged log as -stray and fetch it again from another leader.",
        ),
        (
            LOG_FORMAT,
            "text",
            "Format of the log: text for people, or json, one object per line, for machines.",
        ),
        (LOG_LEVEL, "info", "The least level of what is logged: debug, info, warning or error."),
        (
            METADATA_TOPIC_READABLE,
            "false",
            "Let consumers read __cluster_metadata at this broker, with DESCRIBE on the cluster.",
        ),
        (
            ALLOWED_URLS,
            "",
            "URLs that tokens, and the keys of their issuer, may be read from, between commas.",
        ),
        (
            METRICS_LISTENER,
            "",
            "host:port that serves /metrics, /healthz and /readyz over HTTP; no authentication.",
        ),
    )
)


class LogFormat(Enum):
    """The format of log lines: text for people, or one JSON object per line."""

    TEXT = "text"
    JSON = "json"


def _is_true(name: str, text: str) -> bool:
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
    _demand_one_of(tuple(each.value for each in LogFormat), LOG_FORMAT, text)
    return LogFormat(text)


def _log_level(text: str) -> int:
    _demand_one_of(tuple(LOG_LEVELS), LOG_LEVEL, text)
    return LOG_LEVELS[text]


def _demand_one_of(choices: tuple[str, ...], name: str, text: str) -> None:
    if text not in choices:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: it must be one of {', '.join(choices)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """``kvorum.*``; `metrics_listener` is None if metrics are not served.

    `log_level` is a number of the module logging.
    """

    metrics_listener: Annotated[Address | None, METRICS_LISTENER, _metrics_listener]
    log_format: Annotated[LogFormat, LOG_FORMAT, _log_format]
    log_level: Annotated[int, LOG_LEVEL, _log_level]
    is_metadata_topic_readable: Annotated[
        bool, METADATA_TOPIC_READABLE, partial(_is_true, METADATA_TOPIC_READABLE)
    ]
    sets_damaged_logs_aside: Annotated[
        bool, DAMAGED_LOGS_SET_ASIDE, partial(_is_true, DAMAGED_LOGS_SET_ASIDE)
    ]
