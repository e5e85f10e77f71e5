"""The checks of requests for share partitions; each raises RequestError with Kafka's message."""

from typing import Final

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.share_coordinator.kept_state import KeptState
from kvorum.wire.error_codes import ErrorCode

NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
UNINITIALIZED_WRITE: Final = "Write operation on uninitialized share partition not allowed."
UNINITIALIZED_READ: Final = "Read operation on uninitialized share partition not allowed."


def check_not_negative(number: int, message: str) -> None:
    """Refuse a negative number."""
    if number < 0:
        raise RequestError(ErrorCode.INVALID_REQUEST, message)


def check_initialized(kept: KeptState | None, message: str) -> KeptState:
    """Return what is kept of a share partition; refuse one that is unknown."""
    if kept is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return kept


def check_leader_epoch(kept: KeptState, leader_epoch: int) -> None:
    """Refuse a leader that another one has followed."""
    if kept.leader_epoch_max > leader_epoch:
        raise RequestError.with_default_message(ErrorCode.FENCED_LEADER_EPOCH)


def check_state_epoch(kept: KeptState, state_epoch: int) -> None:
    """Refuse a state that has been initialized again since."""
    if kept.state_epoch_max > state_epoch:
        raise RequestError.with_default_message(ErrorCode.FENCED_STATE_EPOCH)


def check_partition_exists(image: MetadataImage, key: SharePartitionKey) -> None:
    """Refuse a partition that the image does not have."""
    topic = image.topics.by_id.get(key.topic_id)
    if topic is None or len(topic.partitions) <= key.partition:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
