"""The checks of the assignors of groups that a node is configured to have."""

from typing import Final

from kvorum.groups.settings import ASSIGNOR_NAMES
from kvorum.metadata.config_definitions.errors import invalid_value
from kvorum.node.config.errors import config_errors, require
from kvorum.node.config.values import NodeValues

_ASSIGNORS: Final = "group.consumer.assignors"
SHARE_ASSIGNORS: Final = "group.share.assignors"
"""The one assignor of all share groups: Kafka's, or a class of Java."""
_SIMPLE: Final = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
_SHARE_ASSIGNOR_TYPE: Final = (
    "org.apache.kafka.coordinator.group.api.assignor.ShareGroupPartitionAssignor"
)


def check_assignors(values: NodeValues) -> None:
    """Raise ConfigError for assignors that Kafka refuses; classes of Java may be among them."""
    _check_consumer_assignors(values)
    _check_share_assignors(values)


def _check_consumer_assignors(values: NodeValues) -> None:
    found: set[str] = set()
    for word in values.words(_ASSIGNORS):
        is_class = "." in word
        name = ASSIGNOR_NAMES.get(word, word)
        with config_errors():
            if not is_class and word not in ASSIGNOR_NAMES:
                raise invalid_value(_ASSIGNORS, word, "Class cannot be found")
            if name in found:
                reason = (
                    f"Assignor name '{name}' is already registered by another configured assignor. "
                    "Assignor names, whether built-in or custom, must be unique"
                )
                raise invalid_value(_ASSIGNORS, word, reason)
        found.add(name)


def _check_share_assignors(values: NodeValues) -> None:
    words = values.words(SHARE_ASSIGNORS)
    for word in words:
        with config_errors():
            if word in _SIMPLE:
                continue
            if "." not in word:
                raise invalid_value(SHARE_ASSIGNORS, word, "Class cannot be found")
            if word in ASSIGNOR_NAMES:
                reason = f"Class is not an instance of {_SHARE_ASSIGNOR_TYPE}"
                raise invalid_value(SHARE_ASSIGNORS, word, reason)
    require(
        len(words) == 1,
        f"{SHARE_ASSIGNORS} must contain exactly one assignor, but found {len(words)}",
    )


def check_assignors_can_be_served(values: NodeValues) -> None:
    """Refuse assignors that are classes of Java: raises ConfigError."""
    for word in values.words(_ASSIGNORS):
        require(
            word in ASSIGNOR_NAMES,
            f"{_ASSIGNORS} has {word}, but kvorum runs no classes of Java; its assignors are "
            "Kafka's uniform and range",
        )
    for word in values.words(SHARE_ASSIGNORS):
        require(
            word in _SIMPLE,
            f"{SHARE_ASSIGNORS} has {word}, but kvorum runs no classes of Java; its assignor is "
            "Kafka's simple",
        )
