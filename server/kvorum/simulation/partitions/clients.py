"""Producers and consumers, and operators who delete records; each does one thing at a time."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.fetcher.replica_fetcher import EARLIEST
from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.handlers.fetch import FIRST_VERSION_FROM_FOLLOWERS
from kvorum.node.handlers.fetch import FIRST_VERSION_WITH_TOPIC_IDS as FIRST_FETCH_WITH_TOPIC_IDS
from kvorum.node.handlers.produce import FIRST_VERSION_WITH_TOPIC_IDS
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.client_history import INFO, OK, SEND, TXN
from kvorum.simulation.partitions.client_versions import ClientVersions
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.partitions.logged_in_client import LoggedInClient
from kvorum.simulation.partitions.settings import TOPIC, TOPIC_ID
from kvorum.simulation.requests import OnAnswer
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches
from kvorum.wire.records.batch import INT32_MAX

PRODUCE_TIMEOUT_MS: Final = 200
REQUEST_TIMEOUT_MS: Final = 260
READ_BYTES: Final = 5_000
READS_FROM_LEADER: Final = 0.7
READS_ANYWHERE: Final = 0.5
FETCH_VERSIONS: Final = (4, 10, 11, 12, 18)
"""The versions that consumers speak; those before 11 know of no reads from followers."""
FIRST_WITH_EPOCH_BUMP: Final = 12
"""The first version of Produce whose transactions have an epoch each (KIP-890)."""
LEADER_ONLY: Final = 1
KEYS: Final = 12
"""The number of keys where logs are compacted; transactions have as many of their own."""
TOMBSTONES: Final = 0.2
_TRANSACTIONAL_ID: Final = "one-of-many"
_LOST_SEQUENCES: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}
)


class Topic(NamedTuple):
    """A topic by its name and its id; another one may have had the name before."""

    name: str
    id: bytes


STAYING_TOPIC: Final = Topic(TOPIC, TOPIC_ID)
"""The topic that is there for all of a world's time."""


class PartitionClient:
    """A client of one partition, which takes the leader from the metadata of any broker."""

    def __init__(
        self, around: BrokerSurroundings, index: int, *, topic: Topic = STAYING_TOPIC
    ) -> None:
        self.around = around
        self.index = index
        self.id = next(around.client_ids)
        self.topic = topic
        self.place = around.places.number(topic.id, index)
        """The number of the partition among those of all topics."""
        self._versions = ClientVersions(around.releases)
        self._remembered: int | None = None
        self.login: LoggedInClient | None = None
        """The user and the connections of a client that logs in."""

    def version_of(self, kind: type[Message], *, lowest: int = 0, latest: int | None = None) -> int:
        """Return the version in which this client sends a request; see `ClientVersions`."""
        return self._versions.of(kind, lowest=lowest, latest=latest)

    def ask(
        self,
        broker: int,
        request: Message,
        on_answer: OnAnswer,
        *,
        lowest: int = 0,
        version: int | None = None,
    ) -> None:
        """Send a request to a broker, in a version or in one no lower than `lowest`."""
        if version is None:
            version = self.version_of(type(request), lowest=lowest)
        if self.login is not None:
            self.login.ask((self.id, broker), request, on_answer, version=version)
            return
        connection = ClosingConnection(self.around, broker)
        self.around.requests.ask(
            (self.id, broker),
            request,
            connection.serve,
            connection.passing_on(on_answer),
            timeout_ms=REQUEST_TIMEOUT_MS,
            version=version,
        )

    def known_topic(self) -> TopicImage | None:
        """Return the topic, as some broker knows it; None where it does not, or none is up."""
        servers = [one for one in self.around.servers.values() if one.is_up]
        if not servers:
            return None
        return self.around.random.choice(servers).image.topics.by_id.get(self.topic.id)

    def leader(self) -> int | None:
        """Return the leader, as some broker believes; None where no broker knows of one."""
        topic = self.known_topic()
        partition = None if topic is None else topic.partitions.get(self.index)
        return partition.leader if partition is not None and partition.has_leader else None

    def remembered_leader(self) -> int | None:
        """Return the leader of when it was last looked for: a client learns late of another one."""
        if self._remembered is None:
            self._remembered = self.leader()
        return self._remembered

    def forget_leader(self) -> None:
        """Look for the leader again the next time."""
        self._remembered = None


class Producer(PartitionClient):
    """Sends one batch after the other, with acks=all again and again until it is acknowledged.

    `producer_id` is -1 for a producer that is not idempotent: its retries may be written twice.
    One that has written for long, and whose first records were deleted long ago, goes on with a
    `first_sequence`.
    """

    def __init__(
        self,
        around: BrokerSurroundings,
        index: int,
        *,
        acks: int,
        producer_id: int,
        is_transactional: bool = False,
        first_sequence: int = 0,
        topic: Topic = STAYING_TOPIC,
    ) -> None:
        super().__init__(around, index, topic=topic)
        self.producer_id = producer_id
        self.epoch = 0
        self.last_code = 0
        self.is_waiting = False
        """Whether there is an answer to wait for."""
        self._acks, self._is_transactional = acks, is_transactional
        self._lowest_version = FIRST_WITH_EPOCH_BUMP if is_transactional else 0
        if topic is not STAYING_TOPIC:
            # When a request arrives, another topic may have the name.
            self._lowest_version = FIRST_VERSION_WITH_TOPIC_IDS
        self.sequence = first_sequence
        """The sequence of the next record."""
        self.writer = around.history.writer(
            TXN if is_transactional else SEND,
            is_left_out=producer_id < 0 or topic is not STAYING_TOPIC,
        )
        """Its operations in the history, which has none where records may be there twice."""
        self._written = 0
        self._batch: RecordBatch | None = None
        self._attempt = 0

    @property
    def is_idle(self) -> bool:
        """Whether everything that has to be acknowledged has been."""
        return self._acks != ALL_IN_SYNC or self._batch is None

    def describe(self) -> str:
        """Return where it stands, in words."""
        return (
            f"producer {self.producer_id} of partition {self.index}, sequence {self.sequence}, "
            f"attempt {self._attempt}, last answer {self.last_code}"
        )

    def step(self) -> None:
        """Send the next batch, or the last one again."""
        if self.is_waiting:
            return
        if self._batch is None:
            if self.around.settings.is_resting(self.around.now_ms):
                return
            self._batch = self.next_batch()
        leader = self.leader()
        if leader is not None:
            self._send(leader, self._batch)

    def next_batch(self) -> RecordBatch:
        """Return a batch of new records, of which the first one has the next sequence."""
        records: list[RecordData] = []
        for _ in range(self.around.random.randint(1, 3)):
            self._written += 1
            value = f"{self.producer_id} {self._acks} {self._written}".encode()
            records.append(self._record(value))
        is_idempotent = self.producer_id >= 0
        options = BatchOptions(
            producer_id=self.producer_id,
            producer_epoch=self.epoch if is_idempotent else -1,
            base_sequence=self.sequence if is_idempotent else -1,
            is_transactional=self._is_transactional,
        )
        (batch,) = read_batches(build_batch(records, options))
        self.writer.send(self.index, batch)
        return batch

    def _record(self, value: bytes) -> RecordData:
        """Return a record; where logs are compacted, it has a key and may be a tombstone.

        Keys are numbers that all producers use, those within transactions some of their own.
        """
        random, wall_ms = self.around.random, self.around.wall_ms()
        if not self.around.settings.is_compacted:
            return RecordData(value, None, wall_ms)
        key = random.randrange(KEYS) + KEYS * self._is_transactional
        is_tombstone = random.random() < TOMBSTONES
        return RecordData(None if is_tombstone else value, key.to_bytes(4, "big"), wall_ms)

    def _send(self, leader: int, batch: RecordBatch) -> None:
        self._attempt += 1
        attempt = self._attempt
        self.is_waiting = self._acks != 0

        def on_answer(answer: Message | None) -> None:
            if attempt == self._attempt and self._acks:
                self._on_answer(batch, answer)

        self.ask(leader, self.request_of(batch), on_answer, lowest=self._lowest_version)
        if not self._acks:
            self._batch = None

    def request_of(self, batch: RecordBatch) -> ProduceRequest:
        """Return the request that has a batch appended."""
        data = ProduceRequest.PartitionProduceData(self.index, bytes(batch.data))
        return ProduceRequest(
            transactional_id=_TRANSACTIONAL_ID if self._is_transactional else None,
            acks=self._acks,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicProduceData(*self.topic, [data])],
        )

    def _on_answer(self, batch: RecordBatch, answer: Message | None) -> None:
        self.is_waiting = False
        if self._acks != ALL_IN_SYNC:
            self._batch = None
            return
        if not isinstance(answer, ProduceResponse):
            self.around.ledger.counts["writes without an answer"] += 1
            return
        if self.is_appended(batch, answer):
            self.sequence = (self.sequence + batch.last_offset_delta + 1) & INT32_MAX
            self._batch = None
            self.on_appended()
        elif self.has_lost_sequences:
            self.on_lost()

    def is_appended(self, batch: RecordBatch, answer: ProduceResponse) -> bool:
        """Return whether a batch is in the log by an answer; note that it is acknowledged."""
        (one,) = answer.responses[0].partition_responses
        self.last_code = one.error_code
        if one.error_code == ErrorCode.NONE:
            self.around.ledger.acknowledge(self.place, one.base_offset, batch.crc)
            self.writer.acknowledge(self.index, batch, one.base_offset)
        return one.error_code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}

    @property
    def has_lost_sequences(self) -> bool:
        """Whether the last answer means that records before this producer's next are lost."""
        is_exempt = self.around.ledger.is_exempt(self.place)
        return is_exempt and self.last_code in _LOST_SEQUENCES

    def on_appended(self) -> None:
        """Note that a batch is written."""
        self.writer.end(OK)

    def on_lost(self) -> None:
        """Begin again, as a producer may after an unclean election has lost records (KIP-360)."""
        self.begin_epoch(self.epoch + 1)

    def begin_epoch(self, epoch: int) -> None:
        """Begin with the first sequence of an epoch; what has no answer yet is given up."""
        self.writer.end(INFO)
        self.epoch, self.sequence, self._batch = epoch, 0, None

    def give_up_batch(self) -> None:
        """Send the present batch no more, and hear no answer to it."""
        self._attempt += 1
        self._batch, self.is_waiting = None, False


class Consumer(PartitionClient):
    """Reads anywhere in the log, and checks that what it gets is committed."""

    isolation = IsolationLevel.READ_UNCOMMITTED

    def __init__(
        self, around: BrokerSurroundings, index: int, *, topic: Topic = STAYING_TOPIC
    ) -> None:
        super().__init__(around, index, topic=topic)
        self._offset = 0
        self._is_waiting = False
        self._reader = around.history.reader(
            index, self.isolation, is_left_out=topic is not STAYING_TOPIC
        )
        lowest = FIRST_FETCH_WITH_TOPIC_IDS if topic is not STAYING_TOPIC else min(FETCH_VERSIONS)
        drawn = around.random.choice([one for one in FETCH_VERSIONS if one >= lowest])
        self._version = self.version_of(FetchRequest, lowest=lowest, latest=drawn)

    def _source(self) -> int | None:
        """Return the broker to read from: mostly the leader, for some any replica (KIP-392)."""
        random = self.around.random
        if self._version < FIRST_VERSION_FROM_FOLLOWERS:
            return self.remembered_leader()
        if random.random() < READS_FROM_LEADER:
            return self.leader()
        return random.choice(sorted(self.around.servers))

    def step(self) -> None:
        """Read on, or from another place."""
        broker = self._source()
        if self._is_waiting or broker is None:
            return
        self._is_waiting = True
        requested = FetchRequest.FetchPartition(
            partition=self.index, fetch_offset=self._offset, partition_max_bytes=READ_BYTES
        )
        request = FetchRequest(
            max_bytes=READ_BYTES,
            isolation_level=self.isolation.value,
            topics=[FetchRequest.FetchTopic(*self.topic, [requested])],
        )
        offset = self._offset
        self._reader.invoke()

        def read(answer: Message | None) -> None:
            self._on_answer(answer, f"from {offset} of broker {broker}")

        self.ask(broker, request, read, version=self._version)

    def _on_answer(self, answer: Message | None, message: str) -> None:
        self._is_waiting = False
        if not isinstance(answer, FetchResponse):
            self.forget_leader()
            return
        (data,) = answer.responses[0].partitions
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset()
            return
        if data.error_code != ErrorCode.NONE:
            self.forget_leader()
            return
        read = list(read_batches(memoryview(data.records or b""), is_cut_allowed=True))
        self.around.ledger.on_read(self.place, read, message=message)
        given = self.read(data, read, message)
        self._reader.poll(self._offset, given)
        if read:
            self._offset = read[-1].next_offset

    def _reset(self) -> None:
        """Read from the start of the log, or from anywhere (``auto.offset.reset``)."""
        self._reader.seek()
        leader = self.leader()
        if leader is None or self.around.random.random() < READS_ANYWHERE:
            self._offset = self.around.random.randint(0, 500)
            return
        self._is_waiting = True
        requested = ListOffsetsRequest.ListOffsetsPartition(self.index, NO_EPOCH, EARLIEST)
        topic = ListOffsetsRequest.ListOffsetsTopic(self.topic.name, [requested])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        self.ask(leader, request, self._on_start)

    def _on_start(self, answer: Message | None) -> None:
        self._is_waiting = False
        if isinstance(answer, ListOffsetsResponse):
            (found,) = answer.topics[0].partitions
            if found.error_code == ErrorCode.NONE:
                self._offset = found.offset

    def read(
        self, data: FetchResponse.PartitionData, batches: Sequence[RecordBatch], message: str
    ) -> Iterable[RecordBatch]:
        """Return the batches of a fetch whose records an application is given."""
        del data, message
        return batches


class Deleter(PartitionClient):
    """Deletes the oldest records now and then (DeleteRecords).

    As in Kafka, a follower whose log ends within the batch that the leader's log begins with, and
    has other records there, cannot go on: only where no replica can have others is a part of a
    batch deleted.
    """

    def __init__(self, around: BrokerSurroundings, index: int) -> None:
        super().__init__(around, index)
        self._offset = 0

    def step(self) -> None:
        """Move the log's start up a little."""
        leader = self.remembered_leader()
        if leader is None or self.around.settings.is_compacted:
            # Records are not deleted from a log that is compacted alone.
            return
        wanted = self._offset + self.around.random.choice((5, 20, 100))
        offset = self.around.ledger.batch_start(self.index, wanted)
        if offset is None or offset < 0:
            return
        self._offset = wanted
        if self._is_everywhere():
            offset = wanted
        requested = DeleteRecordsRequest.DeleteRecordsPartition(self.index, offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(TOPIC, [requested])
        request = DeleteRecordsRequest(topics=[topic])
        self.around.ledger.on_delete(self.index, offset)
        self.ask(leader, request, self._on_answer)

    def _is_everywhere(self) -> bool:
        """Return whether every replica has what is committed, for good."""
        partition = self.around.committed_image.topics.by_id[TOPIC_ID].partitions[self.index]
        is_in_sync = set(partition.isr) == set(partition.replicas)
        return is_in_sync and not self.around.settings.is_unclean_enabled

    def _on_answer(self, answer: Message | None) -> None:
        is_deleted = isinstance(answer, DeleteRecordsResponse) and all(
            one.error_code == ErrorCode.NONE for one in answer.topics[0].partitions
        )
        if not is_deleted:
            self.forget_leader()
