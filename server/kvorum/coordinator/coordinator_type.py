"""The types of coordinators, and the internal topic of each."""

from enum import Enum

from kvorum.metadata.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)


class CoordinatorType(Enum):
    """The type of a key, by its number in FindCoordinator (Kafka's CoordinatorType)."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2

    @property
    def topic(self) -> str:
        """The internal topic whose partitions' leaders coordinate the keys of this type."""
        match self:
            case CoordinatorType.GROUP:
                return GROUP_METADATA_TOPIC
            case CoordinatorType.TRANSACTION:
                return TRANSACTION_STATE_TOPIC
            case CoordinatorType.SHARE:
                return SHARE_GROUP_STATE_TOPIC
