"""The records of a dead-letter queue: headers that describe a record, and its copy if wanted."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kvorum.broker.dead_letter_queue.original_records import OriginalRecord
from kvorum.broker.share_partition.state_write import DeadLetter
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.records import Header, RecordData
from kvorum.wire.records.batch import HEADER_BYTES
from kvorum.wire.records.record import write_numbered

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
DELIVERY_COUNT: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"
_HEADERS_ONLY: Final = OriginalRecord(None, None)


class DeadLetterRecords(NamedTuple):
    """Records of one batch, which has `size` bytes; the last one is for offset `last_offset`."""

    records: tuple[RecordData, ...]
    size: int
    last_offset: int


class DeadLetterWriter(NamedTuple):
    """Makes the records for dead letters of one partition and group."""

    group_id: str
    partition: TopicPartition
    letter: DeadLetter

    def batch(
        self,
        first_offset: int,
        last_offset: int,
        originals: Mapping[int, OriginalRecord],
        *,
        now_ms: int,
        size_max: int,
    ) -> DeadLetterRecords:
        """Return records for the first offsets, as many as fit `size_max` bytes, but at least one.

        They have key and value of the original, where it is given.
        """
        taken: list[RecordData] = []
        size = HEADER_BYTES
        for offset in range(first_offset, last_offset + 1):
            record = self._record(offset, originals.get(offset, _HEADERS_ONLY), now_ms)
            numbered = write_numbered([(len(taken), record)], now_ms)
            if taken and size + len(numbered.data) > size_max:
                break
            taken.append(record)
            size += len(numbered.data)
        return DeadLetterRecords(tuple(taken), size, first_offset + len(taken) - 1)

    def _record(self, offset: int, original: OriginalRecord, now_ms: int) -> RecordData:
        letter = self.letter
        headers: list[Header] = [
            (TOPIC, self.partition.topic.encode()),
            (PARTITION, b"%d" % self.partition.partition),
            (OFFSET, b"%d" % offset),
            (GROUP, self.group_id.encode()),
            (DELIVERY_COUNT, b"%d" % letter.delivery_count),
            (MESSAGE, letter.cause.value.encode()),
        ]
        return RecordData(original.value, original.key, now_ms, headers)
