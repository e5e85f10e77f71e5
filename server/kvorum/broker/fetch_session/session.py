"""One fetch session: its partitions in order, and what was last sent of each (FetchSession)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.uuid_text import ZERO_UUID

NO_SESSION: Final = 0
FULL_AND_FINAL: Final = -1
FULL: Final = 0
EPOCH_MAX: Final = 2**31 - 1
NOTHING_SENT: Final = -1

TopicNames: TypeAlias = Callable[[bytes], str | None]
"""From a topic's id to its name; None for an id that no topic has."""


class PartitionKey(NamedTuple):
    """A partition as requests name it: by the topic's id, or by its name in old versions."""

    topic: bytes | str
    partition: int


@dataclass(slots=True)
class CachedPartition:
    """The last request for a partition, and the offsets that were last sent of it."""

    name: str
    """Empty as long as no topic with the id is known."""

    topic_id: bytes
    requested: FetchRequest.FetchPartition
    high_watermark: int = NOTHING_SENT
    log_start_offset: int = NOTHING_SENT

    @property
    def key(self) -> PartitionKey:
        """The partition as requests name it."""
        return key_of(self.name, self.topic_id, self.requested.partition)

    def resolve(self, names: TopicNames) -> None:
        """Look for the name of a topic that was unknown when it was asked for."""
        if not self.name and self.topic_id != ZERO_UUID:
            self.name = names(self.topic_id) or ""

    def is_news(self, data: FetchResponse.PartitionData) -> bool:
        """Return whether what was read has to be sent."""
        return (
            len(data.records or b"") > 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
            or data.preferred_read_replica >= 0
            or data.error_code != ErrorCode.NONE
            or data.maybe_diverging_epoch is not None
        )

    def note_sent(self, data: FetchResponse.PartitionData) -> bool:
        """Take note of what was read; return whether it has to be sent."""
        is_news = self.is_news(data)
        # Upon an error the next response has the partition again, so that its end is noticed.
        is_error = data.error_code != ErrorCode.NONE
        self.high_watermark = NOTHING_SENT if is_error else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return is_news


@dataclass(slots=True)
class FetchSession:
    """A client's partitions; those that returned records come last in the next fetch."""

    id: int
    is_privileged: bool
    """Whether the client is a follower."""

    uses_topic_ids: bool
    created_ms: float
    partitions: dict[PartitionKey, CachedPartition] = field(
        default_factory=dict[PartitionKey, CachedPartition]
    )
    epoch: int = 1
    """The epoch that the next request has."""

    def update(
        self,
        listed: Mapping[PartitionKey, CachedPartition],
        forgotten: Iterable[FetchRequest.ForgottenTopic],
    ) -> None:
        """Add and change what a request lists, then remove what it forgets."""
        for key, asked in listed.items():
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = asked
            else:
                known.requested = asked.requested
        for topic in forgotten:
            for index in topic.partitions:
                self.partitions.pop(key_of(topic.topic, topic.topic_id, index), None)

    def advance(self) -> None:
        """Expect the request after this one; after the largest epoch comes 1."""
        self.epoch = next_epoch(self.epoch)


def next_epoch(epoch: int) -> int:
    """Return the epoch after one of an incremental session."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


def key_of(name: str, topic_id: bytes, partition: int) -> PartitionKey:
    """Return the key of a partition, by the id where there is one."""
    return PartitionKey(name if topic_id == ZERO_UUID else topic_id, partition)
