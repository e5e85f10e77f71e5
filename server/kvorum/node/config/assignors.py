"""The checks of the assignors of consumer groups that a node is configured to have."""

from typing import Final

from kvorum.groups.settings import ASSIGNOR_NAMES
from kvorum.metadata.config_definitions.errors import invalid_value
from kvorum.node.config.errors import config_errors, require
from kvorum.node.config.values import NodeValues

_ASSIGNORS: Final = "group.consumer.assignors"


def check_assignors(values: NodeValues) -> None:
    """Raise ConfigError for assignors that Kafka refuses; classes of Java may be among them."""
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


def check_assignors_can_be_served(values: NodeValues) -> None:
    """Refuse assignors that are classes of Java: raises ConfigError."""
    for word in values.words(_ASSIGNORS):
        require(
            word in ASSIGNOR_NAMES,
            f"{_ASSIGNORS} has {word}, but kvorum runs no classes of Java; its assignors are "
            "Kafka's uniform and range",
        )
