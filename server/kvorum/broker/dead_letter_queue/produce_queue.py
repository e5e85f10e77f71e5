"""The batches of dead letters that wait to be sent to one broker, and the requests for them."""

from collections.abc import Callable
from typing import Final, NamedTuple

from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterRecords
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch
from kvorum.wire.uuid_text import ZERO_UUID

ACKS_OF_ALL: Final = -1
TIMEOUT_MS: Final = 30_000
"""The time in which the other replicas have to have the records."""


class QueuePartition(NamedTuple):
    """A partition of a dead-letter queue."""

    topic: str
    topic_id: bytes
    partition: int


class ProduceResult(NamedTuple):
    """The code and the text for a batch that was sent."""

    code: int
    message: str | None = None


class DeadLetterBatch(NamedTuple):
    """Records for a partition, which takes `size_max` bytes together."""

    partition: QueuePartition
    content: DeadLetterRecords
    size_max: int


class _Waiting(NamedTuple):
    batch: DeadLetterBatch
    take: Callable[[ProduceResult], None]


class ProduceCall:
    """One request, with one batch for each partition; each batch that waits is answered once."""

    def __init__(self) -> None:
        self._waiting: dict[QueuePartition, list[_Waiting]] = {}
        self._sizes: dict[QueuePartition, int] = {}

    @property
    def request(self) -> ProduceRequest:
        """The request."""
        topics: dict[bytes, ProduceRequest.TopicProduceData] = {}
        for partition, waiting in self._waiting.items():
            records: list[RecordData] = []
            for one in waiting:
                records += one.batch.content.records
            topic = topics.setdefault(
                partition.topic_id,
                ProduceRequest.TopicProduceData(partition.topic, partition.topic_id),
            )
            topic.partition_data.append(
                ProduceRequest.PartitionProduceData(partition.partition, build_batch(records))
            )
        return ProduceRequest(None, ACKS_OF_ALL, TIMEOUT_MS, list(topics.values()))

    def add(self, waiting: _Waiting) -> bool:
        """Send a batch too; return False if it is too large beside those for its partition."""
        batch = waiting.batch
        size = self._sizes.get(batch.partition, 0)
        together = size + batch.content.size
        if size and together > batch.size_max:
            return False
        self._waiting.setdefault(batch.partition, []).append(waiting)
        self._sizes[batch.partition] = together
        return True

    def on_response(self, response: ProduceResponse) -> None:
        """Hand out the results; a partition that is left out has UNKNOWN_SERVER_ERROR."""
        for partition in tuple(self._waiting):
            result = _result_for(partition, response)
            if result is not None:
                self._take(partition, result)
        self.fail(ErrorCode.UNKNOWN_SERVER_ERROR)

    def fail(self, code: ErrorCode) -> None:
        """Answer those with an error that have no answer yet."""
        for partition in tuple(self._waiting):
            self._take(partition, ProduceResult(code, code.default_message))

    def _take(self, partition: QueuePartition, result: ProduceResult) -> None:
        for one in self._waiting.pop(partition):
            one.take(result)


class ProduceQueue:
    """Batches that wait until those before them are answered."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []

    def add(self, batch: DeadLetterBatch, take: Callable[[ProduceResult], None]) -> None:
        """Have a batch be sent."""
        self._waiting.append(_Waiting(batch, take))

    def take(self) -> ProduceCall | None:
        """Return what is sent together now, which waits no longer; None for nothing."""
        if not self._waiting:
            return None
        call = ProduceCall()
        self._waiting = [one for one in self._waiting if not call.add(one)]
        return call


def _result_for(partition: QueuePartition, response: ProduceResponse) -> ProduceResult | None:
    """Return the result for a partition, by the id of its topic or the name; None without one."""
    for topic in response.responses:
        has_id = topic.topic_id != ZERO_UUID
        if topic.topic_id != partition.topic_id if has_id else topic.name != partition.topic:
            continue
        for result in topic.partition_responses:
            if result.index == partition.partition:
                return ProduceResult(result.error_code, result.error_message)
    return None
