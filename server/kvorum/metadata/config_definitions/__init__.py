"""Configuration keys of Kafka 4.4.0: definitions, parsing of values, and validation.

`TOPIC_CONFIGS`, `BROKER_CONFIGS`, `DYNAMIC_ONLY_BROKER_CONFIGS`, `GROUP_CONFIGS` and
`CLIENT_METRICS_CONFIGS` map a key's name to its `ConfigDefinition`. `parse_value` reads one text;
the `validate_*` functions check a resource's texts as a whole. They raise `InvalidConfigError` with
Kafka's own message.
"""

from kvorum.metadata.config_definitions.address_bounds import (
    CONNECTIONS_OF_ADDRESSES,
    CONNECTIONS_PER_ADDRESS,
    check_connections_per_address,
    connections_of_addresses,
)
from kvorum.metadata.config_definitions.cleaner_bounds import check_cleaner_memory
from kvorum.metadata.config_definitions.cordoned_directories import (
    ALL_DIRECTORIES,
    CORDONED_LOG_DIRS,
    check_cordoned_directories,
)
from kvorum.metadata.config_definitions.definition import ConfigDefinition, ConfigType, UpdateMode
from kvorum.metadata.config_definitions.endpoints import (
    QuorumVoterEntry,
    parse_bootstrap_server,
    parse_host_port,
    parse_quorum_voters,
)
from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.group_bounds import bounded_intervals, check_group_bounds
from kvorum.metadata.config_definitions.log_bounds import DYNAMIC_LOG_TIMES, check_log_times
from kvorum.metadata.config_definitions.pairs import parse_map
from kvorum.metadata.config_definitions.rules import (
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from kvorum.metadata.config_definitions.settings import (
    Settings,
    ValueOf,
    keys_of,
    read_settings,
    updated_settings,
)
from kvorum.metadata.config_definitions.tables import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    DYNAMIC_ONLY_BROKER_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    broker_definition,
    broker_synonyms,
    broker_value,
    group_defaults,
    group_synonym,
    topic_defaults,
    topic_synonym,
)
from kvorum.metadata.config_definitions.validators import ConfigValue
from kvorum.metadata.config_definitions.values import (
    convert_to_text,
    default_value,
    parse_all,
    parse_list,
    parse_type,
    parse_value,
)
from kvorum.wire.java_text import java_split

__all__ = [
    "ALL_DIRECTORIES",
    "BROKER_CONFIGS",
    "CLIENT_METRICS_CONFIGS",
    "CONNECTIONS_OF_ADDRESSES",
    "CONNECTIONS_PER_ADDRESS",
    "CORDONED_LOG_DIRS",
    "DYNAMIC_LOG_TIMES",
    "DYNAMIC_ONLY_BROKER_CONFIGS",
    "GROUP_CONFIGS",
    "TOPIC_CONFIGS",
    "ConfigDefinition",
    "ConfigType",
    "ConfigValue",
    "InvalidConfigError",
    "QuorumVoterEntry",
    "Settings",
    "UpdateMode",
    "ValueOf",
    "bounded_intervals",
    "broker_definition",
    "broker_synonyms",
    "broker_value",
    "check_cleaner_memory",
    "check_connections_per_address",
    "check_cordoned_directories",
    "check_group_bounds",
    "check_log_times",
    "connections_of_addresses",
    "convert_to_text",
    "default_value",
    "group_defaults",
    "group_synonym",
    "java_split",
    "keys_of",
    "parse_all",
    "parse_bootstrap_server",
    "parse_host_port",
    "parse_list",
    "parse_map",
    "parse_quorum_voters",
    "parse_type",
    "parse_value",
    "read_settings",
    "topic_defaults",
    "topic_synonym",
    "updated_settings",
    "validate_client_metrics_configs",
    "validate_group_configs",
    "validate_topic_configs",
]
