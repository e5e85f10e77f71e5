"""One share session: the partitions of a member, and the news of each (Kafka's ShareSession)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_fetch import ShareFetchResponse

INITIAL_EPOCH: Final = 0
"""The epoch of a request that begins a session."""
FINAL_EPOCH: Final = -1
"""The epoch of a request that ends one."""
EPOCH_MAX: Final = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """Return the epoch after another one: after the largest comes 1, after the final one none."""
    if epoch < INITIAL_EPOCH:
        return FINAL_EPOCH
    return 1 if epoch == EPOCH_MAX else epoch + 1


class ShareSessionKey(NamedTuple):
    """The member that a session is of: it has no other one."""

    group_id: str
    member_id: str


@dataclass(slots=True)
class CachedSharePartition:
    """A partition of a session; with `is_news_due` the next response has it in any case."""

    partition: TopicIdPartition
    is_news_due: bool

    def is_news(self, data: ShareFetchResponse.PartitionData) -> bool:
        """Return whether what was read has to be sent."""
        has_records = len(data.records or b"") > 0
        return has_records or self.is_news_due or data.error_code != ErrorCode.NONE

    def note_sent(self, data: ShareFetchResponse.PartitionData) -> bool:
        """Take note of what was read; return whether it has to be sent.

        Upon an error the next response has the partition again, so that its end is noticed.
        """
        is_news = self.is_news(data)
        self.is_news_due = data.error_code != ErrorCode.NONE
        return is_news


class ShareSession:
    """The partitions of a member; those that returned records come last in the next fetch.

    `connection` is the one that began the session: when it ends, the session does.
    """

    def __init__(
        self,
        key: ShareSessionKey,
        partitions: Iterable[TopicIdPartition],
        connection: Hashable,
    ) -> None:
        self.key = key
        self.connection = connection
        self.partitions = {
            one.key: CachedSharePartition(one, is_news_due=False) for one in partitions
        }
        self.epoch = next_epoch(INITIAL_EPOCH)
        """The epoch that the next request has."""
        self.counted = 0
        """The partitions at the last count, which a cache keeps the sum of."""

    def update(
        self, listed: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        """Add what a request lists, then remove what it forgets."""
        for one in listed:
            if one.key not in self.partitions:
                self.partitions[one.key] = CachedSharePartition(one, is_news_due=True)
        for one in forgotten:
            self.partitions.pop(one.key, None)

    def advance(self) -> None:
        """Expect the request after this one."""
        self.epoch = next_epoch(self.epoch)
