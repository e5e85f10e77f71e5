"""Definitions of configuration keys: type, default, limits and update mode."""

from dataclasses import dataclass
from enum import Enum, IntEnum

from kvorum.metadata.config_definitions.validators import Validator


class ConfigType(IntEnum):
    """The types of Kafka's ConfigDef, with the numbers of DescribeConfigs responses."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(Enum):
    """Whether a broker key can change while the broker runs, and at which level."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """One of Kafka's configuration keys.

    `default` is the default as text; it is None for a key that has no value unless it is set, and
    for a required key. `documentation` is one line in our words, where there is one.
    """

    name: str
    type: ConfigType
    default: str | None
    validator: Validator | None = None
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    is_required: bool = False
    is_internal: bool = False
    documentation: str | None = None

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type is ConfigType.PASSWORD

    @property
    def is_read_only(self) -> bool:
        """Whether a broker key can only be set in the properties file."""
        return self.update_mode is UpdateMode.READ_ONLY
