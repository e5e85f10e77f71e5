"""The keys that are kvorum's own; all begin with ``kvorum.``."""

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Final, TypeVar

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import ConfigDefinition, ConfigType, parse_host_port
from kvorum.node.config.errors import ConfigError, config_errors

Choice = TypeVar("Choice", bound=Enum)
METRICS_LISTENER: Final = "kvorum.metrics.listener"
DAMAGED_LOGS_SET_ASIDE: Final = "kvorum.damaged.logs.set.aside"
LOG_FORMAT: Final = "kvorum.log.format"
LOG_LEVEL: Final = "kvorum.log.level"
METADATA_TOPIC_READABLE: Final = "kvorum.metadata.topic.readable"
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


class LogLevel(Enum):
    """The least level of what is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


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


def _one_of(choices: type[Choice], name: str, text: str) -> Choice:
    try:
        return choices(text)
    except ValueError:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: it must be one of "
            f"{', '.join(each.value for each in choices)}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSettings:
    """``kvorum.*``; `metrics_listener` is None if metrics are not served."""

    metrics_listener: Annotated[Address | None, METRICS_LISTENER, _metrics_listener]
    log_format: Annotated[LogFormat, LOG_FORMAT, partial(_one_of, LogFormat, LOG_FORMAT)]
    log_level: Annotated[LogLevel, LOG_LEVEL, partial(_one_of, LogLevel, LOG_LEVEL)]
    is_metadata_topic_readable: Annotated[
        bool, METADATA_TOPIC_READABLE, partial(_is_true, METADATA_TOPIC_READABLE)
    ]
    sets_damaged_logs_aside: Annotated[
        bool, DAMAGED_LOGS_SET_ASIDE, partial(_is_true, DAMAGED_LOGS_SET_ASIDE)
    ]
