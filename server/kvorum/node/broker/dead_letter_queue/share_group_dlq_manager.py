"""Writes dead letters to the topics of their groups (DefaultShareGroupDLQManager).

What may pass is tried again after a pause that doubles, as by the `DefaultStatePersister`.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from kvorum.broker.coordinators import coordinator_node
from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterRecords, DeadLetterWriter
from kvorum.broker.dead_letter_queue.dead_letter_topic import (
    check_dead_letter_topic,
    dead_letter_queue_settings,
    group_dead_letter_queue,
)
from kvorum.broker.dead_letter_queue.original_records import OriginalRecords
from kvorum.broker.dead_letter_queue.produce_queue import DeadLetterBatch, QueuePartition
from kvorum.broker.partition import Partition
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.known_error_code import known_error_code
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.dead_letter_queue.dead_letter_metrics import DeadLetterMetrics
from kvorum.node.broker.dead_letter_queue.dead_letter_sender import DeadLetterSender
from kvorum.node.broker.dead_letter_queue.original_records_reader import read_original_records
from kvorum.node.broker.exponential_backoff import ExponentialBackoff
from kvorum.node.coroutines import Lock, Wait, sleep
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode

ATTEMPTS_MAX: Final = 9
BACKOFF_MS: Final = 50
"""Half of the first pause."""
BACKOFF_MAX_MS: Final = 30_000
PASSING: Final = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The codes upon which a batch is sent again: its topic or its leader may be there later."""
CreateTopic = Callable[[str], Coroutine[Wait[Any], Any, None]]
"""Creates a dead-letter queue, and waits for it, but not for long; raises RequestError."""


class _BatchRefusedError(RequestError):
    """The leader of a queue has refused a batch, or could not be asked."""


class ShareGroupDLQManager:
    """Writes to the leaders of dead-letter queues, wherever these are.

    `listener` is the one that brokers use, `configs` has the values of topics and of this broker,
    `threads` read the logs, and `draw` returns a number from 0 up to 1.
    """

    def __init__(
        self,
        sender: DeadLetterSender,
        listener: str,
        *,
        image: Callable[[], MetadataImage],
        configs: TopicConfigs,
        create_topic: CreateTopic,
        threads: Runtime,
        draw: Callable[[], float],
        runtime: Runtime,
    ) -> None:
        self._sender = sender
        self._listener = listener
        self._image = image
        self._configs = configs
        self._create_topic = create_topic
        self._creations = Lock(runtime)
        self._threads = threads
        self._backoff = ExponentialBackoff(BACKOFF_MS, BACKOFF_MAX_MS, draw)
        self._runtime = runtime
        self.metrics: dict[str, DeadLetterMetrics] = {}
        """The counts of each group that has had dead letters; to be read only."""

    def close(self) -> None:
        """Write nothing any more; what waits is refused."""
        self._sender.close()

    async def enqueue(self, writer: DeadLetterWriter, replica: Partition) -> None:
        """Write records that are in the log of a replica which this broker leads.

        Raises DeadLetterQueueError if not all of them could be written.
        """
        letter = writer.letter
        next_offset = letter.first_offset
        while next_offset <= letter.last_offset:
            originals = await self._originals(writer, replica, next_offset)
            written = await self._written(writer, next_offset, originals)
            next_offset = written.last_offset + 1

    async def _originals(
        self, writer: DeadLetterWriter, replica: Partition, first_offset: int
    ) -> OriginalRecords:
        """Read the records from an offset on, as many as one batch may have; none if not wanted."""
        image = self._image()
        queue = group_dead_letter_queue(writer.group_id, image.configs)
        last_offset = writer.letter.last_offset
        originals = OriginalRecords(first_offset, last_offset, self._size_max(queue.topic, image))
        if queue.is_record_copied:
            await read_original_records(originals, replica, self._threads)
        else:
            originals.give_up()
        return originals

    async def _written(
        self, writer: DeadLetterWriter, first_offset: int, originals: OriginalRecords
    ) -> DeadLetterRecords:
        """Return the first batch once it is written; raises DeadLetterQueueError."""
        failure_count = 0
        while True:
            try:
                return await self._write(writer, first_offset, originals)
            except RequestError as error:
                failure_count += 1
                is_last = failure_count == ATTEMPTS_MAX or self._sender.is_closed
                if is_last or error.code not in PASSING:
                    if isinstance(error, _BatchRefusedError):
                        self._metrics_of(writer.group_id).failed_produce_count += 1
                    raise DeadLetterQueueError(str(error)) from error
            await sleep(self._runtime, self._backoff.pause_ms(failure_count))

    async def _write(
        self, writer: DeadLetterWriter, first_offset: int, originals: OriginalRecords
    ) -> DeadLetterRecords:
        """Write the first batch to the leader that the queue has at the moment.

        Raises RequestError, and DeadLetterQueueError for a topic that may not be a queue.
        """
        topic = await self._topic(writer.group_id)
        image = self._image()
        place = QueuePartition(
            topic.name, topic.id, writer.partition.partition % len(topic.partitions)
        )
        leader = coordinator_node(image, topic.name, place.partition, self._listener)
        if leader is None:
            raise RequestError.with_default_message(ErrorCode.LEADER_NOT_AVAILABLE)
        size_max = self._size_max(topic.name, image)
        content = writer.batch(
            first_offset,
            min(writer.letter.last_offset, originals.next_offset - 1),
            originals.records,
            now_ms=self._runtime.wall_ms(),
            size_max=size_max,
        )
        metrics = self._metrics_of(writer.group_id)
        metrics.produce_count += 1
        result = await self._sender.send(leader.node_id, DeadLetterBatch(place, content, size_max))
        code = known_error_code(result.code)
        if code is not ErrorCode.NONE:
            raise _BatchRefusedError(code, result.message or code.default_message)
        metrics.written_record_count += len(content.records)
        return content

    def _metrics_of(self, group_id: str) -> DeadLetterMetrics:
        return self.metrics.setdefault(group_id, DeadLetterMetrics())

    async def _topic(self, group_id: str) -> TopicImage:
        """Return the topic of a group, which is created if it may be.

        Raises RequestError where it cannot be created, and DeadLetterQueueError where the group
        may not have it.
        """
        image = self._image()
        name = group_dead_letter_queue(group_id, image.configs).topic
        settings = dead_letter_queue_settings(self._configs.layers(image))
        check_dead_letter_topic(name, image, settings)
        async with self._creations:
            if self._image().topics.by_name(name) is None:
                await self._create_topic(name)
        topic = self._image().topics.by_name(name)
        if topic is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def _size_max(self, topic: str, image: MetadataImage) -> int:
        """Return the largest batch that a topic takes; that of the broker if it is not there."""
        return self._configs.values(topic, image).log_config().max_message_bytes
