"""A ShareFetch as the manager of share partitions sees it, and the results of acknowledgements."""

from collections.abc import Sequence
from typing import NamedTuple

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.share_partition.acquisition import ShareAcquirer
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode


class ShareFetch(NamedTuple):
    """The partitions that a member acquires from, in this order, and its limits.

    `max_records` counts for all partitions together.
    """

    group_id: str
    acquirer: ShareAcquirer
    partitions: Sequence[TopicIdPartition]
    max_records: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: IsolationLevel


class AcknowledgeResult(NamedTuple):
    """The result of the acknowledgements of one partition."""

    code: ErrorCode
    message: str | None = None

    @classmethod
    def of(cls, refusal: RequestError | None) -> "AcknowledgeResult":
        """Return the result for a refusal, or for none."""
        if refusal is None:
            return cls(ErrorCode.NONE)
        return cls(refusal.code, refusal.message_or_default)


def rotated(
    partitions: Sequence[TopicIdPartition], session_epoch: int
) -> Sequence[TopicIdPartition]:
    """Return partitions so that each is the first one in turn (Kafka's PartitionRotateStrategy)."""
    if session_epoch < 1 or not partitions:
        return partitions
    first = session_epoch % len(partitions)
    return [*partitions[first:], *partitions[:first]]
