"""Counts of the records that go in and out (Kafka's BrokerTopicStats)."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class BrokerTopicMetrics:
    """Counts since the start, of one topic or of all of them."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_rejected: int = 0
    failed_produce_requests: int = 0
    total_produce_requests: int = 0
    total_fetch_requests: int = 0
    failed_share_fetch_requests: int = 0
    total_share_fetch_requests: int = 0
    failed_share_acknowledgement_requests: int = 0
    total_share_acknowledgement_requests: int = 0


@dataclass(slots=True)
class BrokerTopicStats:
    """The counts of a broker; of failed reads, and of replication, there are only totals."""

    all_topics: BrokerTopicMetrics = field(default_factory=BrokerTopicMetrics)
    failed_fetch_requests: int = 0
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    topics: dict[str, BrokerTopicMetrics] = field(default_factory=dict[str, BrokerTopicMetrics])
    """The counts of each topic that has some."""

    def on_append(self, topic: str, *, size_bytes: int, message_count: int) -> None:
        """Count records that a leader has appended."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.bytes_in += size_bytes
            metrics.messages_in += message_count

    def on_produce_request(self, topic: str) -> None:
        """Count a request to append to one partition."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.total_produce_requests += 1

    def on_failed_produce_request(self, topic: str) -> None:
        """Count one that was not appended, for another reason than the usual ones."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.failed_produce_requests += 1

    def on_rejected(self, topic: str, *, size_bytes: int) -> None:
        """Count records that are too large."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.bytes_rejected += size_bytes

    def on_fetch_request(self, topic: str) -> None:
        """Count a read of one partition."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.total_fetch_requests += 1

    def on_share_fetch_request(self, topic: str) -> None:
        """Count a fetch of a share group that has partitions of a topic."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.total_share_fetch_requests += 1

    def on_failed_share_fetch_request(self, topic: str) -> None:
        """Count one of which a partition of the topic was refused."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.failed_share_fetch_requests += 1

    def on_share_acknowledgement_request(self, topic: str) -> None:
        """Count the acknowledgements of a request for partitions of a topic."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.total_share_acknowledgement_requests += 1

    def on_failed_share_acknowledgement_request(self, topic: str) -> None:
        """Count those of which a partition of the topic was refused."""
        for metrics in (self._of(topic), self.all_topics):
            metrics.failed_share_acknowledgement_requests += 1

    def on_bytes_out(self, topic: str, *, size_bytes: int, is_follower: bool) -> None:
        """Count records that are sent to a consumer or a follower."""
        if is_follower:
            self.replication_bytes_out += size_bytes
            return
        for metrics in (self._of(topic), self.all_topics):
            metrics.bytes_out += size_bytes

    def retain(self, topics: Iterable[str]) -> None:
        """Forget all topics but these, as this broker hosts nothing of them any more."""
        for topic in self.topics.keys() - set(topics):
            del self.topics[topic]

    def _of(self, topic: str) -> BrokerTopicMetrics:
        metrics = self.topics.get(topic)
        if metrics is None:
            metrics = self.topics[topic] = BrokerTopicMetrics()
        return metrics
