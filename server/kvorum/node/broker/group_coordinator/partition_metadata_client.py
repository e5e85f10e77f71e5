"""The ends of partitions, wherever they are led, as their leaders see them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from kvorum.groups.offsets.store import TopicPartition
from kvorum.wire.error_codes import ErrorCode


class LatestOffset(NamedTuple):
    """The offset after the last record that consumers see, or the error that is there instead."""

    offset: int
    error: ErrorCode = ErrorCode.NONE


class PartitionMetadataClient(Protocol):
    """Asks the leaders of partitions (Kafka's PartitionMetadataClient)."""

    async def list_latest_offsets(
        self, partitions: Iterable[TopicPartition], /
    ) -> Mapping[TopicPartition, LatestOffset]:
        """Return the end of each partition, or the last error after all tries; raises nothing."""
        ...

    def close(self) -> None:
        """Ask no leader any more."""
        ...
