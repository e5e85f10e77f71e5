"""Every configuration key of Kafka 4.4.0, by resource type and name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from kvorum.metadata.config_definitions.broker_rows import BROKER_ROWS
from kvorum.metadata.config_definitions.definition import ConfigDefinition
from kvorum.metadata.config_definitions.documentation import DOCUMENTATION
from kvorum.metadata.config_definitions.other_rows import (
    CLIENT_METRICS_ROWS,
    DYNAMIC_ONLY_BROKER_ROWS,
    GROUP_ROWS,
)
from kvorum.metadata.config_definitions.topic_rows import TOPIC_ROWS


def _table(
    rows: Iterable[ConfigDefinition], documentation: Mapping[str, str]
) -> Mapping[str, ConfigDefinition]:
    return MappingProxyType(
        {
            row.name: replace(row, documentation=documentation[row.name])
            if row.name in documentation
            else row
            for row in rows
        }
    )


# Each in the order in which Kafka defines the keys, which is the order of its checks.
TOPIC_CONFIGS = _table(TOPIC_ROWS, DOCUMENTATION["topic"])
BROKER_CONFIGS = _table(BROKER_ROWS, DOCUMENTATION["broker"])
# Keys that only exist as dynamic values, never in a properties file.
DYNAMIC_ONLY_BROKER_CONFIGS = _table(DYNAMIC_ONLY_BROKER_ROWS, DOCUMENTATION["broker"])
GROUP_CONFIGS = _table(GROUP_ROWS, DOCUMENTATION["group"])
CLIENT_METRICS_CONFIGS = _table(CLIENT_METRICS_ROWS, DOCUMENTATION["client_metrics"])
