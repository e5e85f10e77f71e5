"""Kafka's rules for the times of a broker's logs (KafkaConfig)."""

from collections.abc import Mapping
from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.tables import topic_defaults

_ROLL: Final = "log.roll.ms"
_JITTER: Final = "log.roll.jitter.ms"
_RETENTION: Final = "log.retention.ms"
DYNAMIC_LOG_TIMES: Final = frozenset({_ROLL, _JITTER, _RETENTION})
"""The keys of such times that can change while a broker runs."""


def check_log_times(texts: Mapping[str, str]) -> None:
    """Raise InvalidConfigError for a time after which a segment, or a record, cannot end.

    `texts` are the explicit values of a broker's keys.
    """
    of_topics = topic_defaults(texts)
    roll_ms, jitter_ms = of_topics["segment.ms"], of_topics["segment.jitter.ms"]
    assert isinstance(roll_ms, int)
    assert isinstance(jitter_ms, int)
    if roll_ms < 1:
        raise InvalidConfigError(f"{_ROLL} must be greater than or equal to 1")
    if jitter_ms < 0:
        raise InvalidConfigError(f"{_JITTER} must be greater than or equal to 0")
    if of_topics["retention.ms"] == 0:
        raise InvalidConfigError(
            f"{_RETENTION} must be unlimited (-1) or, greater than or equal to 1"
        )
