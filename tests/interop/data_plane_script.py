"""Random requests for records: mostly right, and often nearly right."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from kvorum.wire.messages.delete_records import DeleteRecordsRequest
from kvorum.wire.messages.describe_producers import DescribeProducersRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.list_offsets import ListOffsetsRequest
from kvorum.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.uuid_text import ZERO_UUID

TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "rolled": {"internal.segment.bytes": "3000", "index.interval.bytes": "200"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "unpacked": {"compression.type": "uncompressed"},
    "compacted": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": "300"},
    "large": {"max.message.bytes": "20000000"},
    "timely": {"message.timestamp.before.max.ms": "5000000"},
}
HOUR_MS: Final = 3_600_000
LARGE_BYTES: Final = 6 * 1024 * 1024
"""The size of a value that is large only once it is unpacked."""
PACKED: Final = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
EVERYTHING_FROM: Final = (-1, -2, -3, -4, -5, -6, -7)
CRC_BYTE: Final = 18
FIRST_FETCH_WITH_EPOCH: Final = 9
FIRST_FETCH_WITH_LAST_EPOCH: Final = 12
FIRST_LIST_WITH_ISOLATION: Final = 2
FIRST_LIST_WITH_EPOCH: Final = 4
FIRST_WITH_TOPIC_IDS: Final = 13
"""The first version, of Produce and of Fetch, that names a topic by its id."""
UNKNOWN_ID: Final = bytes([7]) * 16
NAMELESS: Final = ""
"""A topic without a name, and with the id zero where there are ids."""
LIMITS_32: Final = (-(1 << 31), -2, -1, 0, (1 << 31) - 1)
LIMITS_64: Final = (-(1 << 63), -3, -2, -1, 0, (1 << 63) - 1)


class Step(NamedTuple):
    """A request in a version, which names topics by their names."""

    request: Message
    version: int

    def addressed(self, ids: Mapping[str, bytes]) -> Message:
        """Return the request to a server, by the ids of its topics where the version has ids."""
        body = copy.deepcopy(self.request)
        if self.version < FIRST_WITH_TOPIC_IDS:
            return body
        if isinstance(body, ProduceRequest):
            for sent in body.topic_data:
                sent.name, sent.topic_id = "", id_of(sent.name, ids)
        elif isinstance(body, FetchRequest):
            for wished in body.topics:
                wished.topic, wished.topic_id = "", id_of(wished.topic, ids)
        return body


def id_of(topic: str, ids: Mapping[str, bytes]) -> bytes:
    return ZERO_UUID if topic == NAMELESS else ids.get(topic, UNKNOWN_ID)


@dataclass
class Script:
    """Makes up requests; `now_ms` is about the time of day at which they are sent.

    `leader_epoch` is that of the topics' leaders by now.
    """

    random: Random
    now_ms: int
    topics: Sequence[str] = tuple(TOPICS)
    leader_epoch: int = 0
    next_sequences: dict[tuple[str, int, int], int] = field(
        default_factory=dict[tuple[str, int, int], int]
    )
    sent: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])

    def steps(self, count: int) -> Iterator[Step]:
        makers = (
            (self.produce, 50),
            (self.fetch, 25),
            (self.list_offsets, 15),
            (self.offset_for_leader_epoch, 4),
            (self.delete_records, 3),
            (self.describe_producers, 3),
        )
        for _ in range(count):
            (maker,) = self.random.choices(
                [maker for maker, _ in makers], [weight for _, weight in makers]
            )
            yield maker()

    def _topic(self) -> str:
        if self.random.random() < 0.02:
            return NAMELESS
        return self.random.choice(("absent", *self.topics, *self.topics))

    def _partition(self) -> int:
        return self._near(LIMITS_32, self.random.choice((0, 0, 0, 0, 0, 0, 7)))

    def _near(self, limits: tuple[int, ...], usual: int) -> int:
        """Return the usual value, or now and then one of those at the limits of its field."""
        return self.random.choice(limits) if self.random.random() < 0.02 else usual

    def _epoch(self, *choices: int) -> int:
        """Return a choice; one that is not negative counts from an epoch that there has been."""
        chosen = self.random.choice(choices)
        if chosen < 0 or self.leader_epoch == 0:
            return chosen
        return chosen + self.random.randint(0, self.leader_epoch)

    def produce(self) -> Step:
        topic, partition = self._topic(), self._partition()
        version = self.random.randint(3, 13)
        data = ProduceRequest.PartitionProduceData(partition, self._records(topic))
        acks = self.random.choice((-1, -1, 1, 1, 1, 2))
        body = ProduceRequest(
            None, acks, 5000, [ProduceRequest.TopicProduceData(topic, b"", [data])]
        )
        return Step(body, version)

    def _records(self, topic: str) -> bytes:
        random = self.random
        earlier = self.sent.setdefault(topic, [])
        if earlier and random.random() < 0.1:
            return random.choice(earlier[-7:])
        batch = bytearray(self._batch(topic))
        earlier.append(bytes(batch))
        kind = random.random()
        if kind < 0.04:
            batch[CRC_BYTE] ^= 1
        elif kind < 0.07:
            batch[random.randrange(0, 61)] ^= 1 << random.randrange(8)
        elif kind < 0.09:
            batch += self._batch(topic)
        elif kind < 0.11:
            batch = batch[: random.randrange(len(batch))]
        elif kind < 0.13:
            batch[7] = 3
        elif kind < 0.15:
            batch[16] = random.choice((0, 1, 3, 255))
        return bytes(batch)

    def _batch(self, topic: str) -> bytes:
        random = self.random
        count = random.choice((1, 1, 2, 3, 8))
        begin = self.now_ms - random.choice((0, 10, 1000, HOUR_MS, 2 * HOUR_MS))
        if random.random() < 0.05:
            begin = self.now_ms + 3 * HOUR_MS
        records = [
            RecordData(
                random.choice((None, b"", bytes(random.randrange(90)))),
                random.choice((b"k", b"", b"key-2")) if random.random() < 0.9 else None,
                begin + random.randrange(2000) if random.random() < 0.97 else -1,
                (),
            )
            for _ in range(count)
        ]
        compression = random.choice((Compression.NONE,) * 4 + tuple(Compression))
        if random.random() < (0.2 if topic == "large" else 0.02):
            compression = random.choice(PACKED)
            records = self._with_large_values(records)
        options = BatchOptions(base_offset=0, compression=compression)
        if random.random() < 0.5:
            options = self._of_producer(topic, count, options)
        return bytes(build_batch(records, options))

    def _with_large_values(self, records: list[RecordData]) -> list[RecordData]:
        """Return the records with one value that is large, or with all of some size."""
        if self.random.random() < 0.5:
            return [*records[:-1], records[-1]._replace(value=bytes(LARGE_BYTES))]
        return [record._replace(value=bytes(LARGE_BYTES // 5)) for record in records]

    def _of_producer(self, topic: str, count: int, options: BatchOptions) -> BatchOptions:
        random = self.random
        producer, epoch = random.choice((7, 7, 7, 8, 8, 8, -2)), random.choice((0, 0, 0, 0, 1))
        key = topic, producer, epoch
        sequence = self.next_sequences.get(key, 0)
        if random.random() < 0.06:
            sequence += random.choice((1, 5))
        self.next_sequences[key] = sequence + count
        return options._replace(producer_id=producer, producer_epoch=epoch, base_sequence=sequence)

    def fetch(self) -> Step:
        random = self.random
        version = random.randint(4, 18)
        wish = FetchRequest.FetchPartition(self._partition())
        offset = random.choice((-1, 0, 0, 3, 10, 25, 50, random.randrange(300)))
        wish.fetch_offset = self._near(LIMITS_64, offset)
        size = random.choice((0, 1, 100, 500, 5000, 1 << 20))
        wish.partition_max_bytes = self._near(LIMITS_32, size)
        if version >= FIRST_FETCH_WITH_EPOCH:
            wish.current_leader_epoch = self._epoch(-2, -1, -1, 0, 1, 5)
        if version >= FIRST_FETCH_WITH_LAST_EPOCH:
            wish.last_fetched_epoch = self._epoch(-2, -1, -1, 0, 0, 1, 5)
        body = FetchRequest(
            max_wait_ms=0,
            min_bytes=self._near(LIMITS_32, random.choice((0, 1))),
            max_bytes=self._near(LIMITS_32, random.choice((0, 50, 1000, 1 << 30))),
            isolation_level=random.choice((0, 1)),
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(self._topic(), partitions=[wish])],
        )
        return Step(body, version)

    def list_offsets(self) -> Step:
        random = self.random
        timestamp = random.choice(
            (*EVERYTHING_FROM, 0, self.now_ms - random.randrange(-2000, 3 * HOUR_MS))
        )
        timestamp = self._near(LIMITS_64, timestamp)
        version = random.randint(1, 11)
        epoch = self._epoch(-2, -1, -1, -1, 0, 4) if version >= FIRST_LIST_WITH_EPOCH else -1
        wish = ListOffsetsRequest.ListOffsetsPartition(self._partition(), epoch, timestamp)
        wishes = [wish] if random.random() < 0.95 else [wish, wish]
        topic = ListOffsetsRequest.ListOffsetsTopic(self._topic(), wishes)
        isolation = random.choice((0, 1)) if version >= FIRST_LIST_WITH_ISOLATION else 0
        # A consumer, a broker, and what looks at a log from outside.
        replica_id = random.choice((-1, -1, -1, 0, -2))
        return Step(ListOffsetsRequest(replica_id, isolation, [topic]), version)

    def offset_for_leader_epoch(self) -> Step:
        wish = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
            self._partition(), self._epoch(-2, -1, -1, 0, 1), self._epoch(-1, 0, 0, 1, 5)
        )
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(self._topic(), [wish])
        return Step(OffsetForLeaderEpochRequest(topics=[topic]), self.random.randint(3, 4))

    def delete_records(self) -> Step:
        random = self.random
        offset = self._near(LIMITS_64, random.choice((-1, -2, 0, 1, 4, 12, 30, 5000)))
        wish = DeleteRecordsRequest.DeleteRecordsPartition(self._partition(), offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(
            random.choice(("small", "rolled", "absent", "compacted")), [wish]
        )
        return Step(DeleteRecordsRequest([topic], 5000), random.randint(0, 2))

    def describe_producers(self) -> Step:
        topic = DescribeProducersRequest.TopicRequest(
            self.random.choice((self._topic(), "bad name")), [self._partition()]
        )
        return Step(DescribeProducersRequest([topic]), 0)
