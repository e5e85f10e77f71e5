"""Steps for a share coordinator's shard, by chance: requests, time, images, loading."""

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.interop.metadata_steps import MetadataSteps
from tests.interop.share_coordinator_driver import Driver

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.share_coordinator.records import share_snapshot_record, share_update_record
from kvorum.share_coordinator.share_group_offset import ShareGroupOffset
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

GROUPS: Final = ("g", "g:1", "Grüße")
LATER_MS: Final = (1, 100, 1500, 4000)
STORAGE_ERROR: Final = 56
LONG_MAX: Final = (1 << 63) - 1
_WEIGHTS: Final = {
    "write": 40,
    "read": 12,
    "initialize": 10,
    "summary": 4,
    "delete": 3,
    "time": 10,
    "cold": 4,
    "commit": 6,
    "image": 4,
    "load": 2,
    "raw": 2,
}


def random_batches(random: Random, span: int, count_max: int) -> list[PersisterStateBatch]:
    """Return batches with offsets below `span`, few of them with the end before the beginning."""
    batches: list[PersisterStateBatch] = []
    for _ in range(random.randint(0, count_max)):
        first = random.randrange(span)
        last = first + random.choice((0, 0, 1, 3, 10))
        if random.random() < 0.01:
            last = random.choice((first - 1, first - 3, LONG_MAX))
        state, count = random.choice((0, 2, 4)), random.choice((1, 1, 2, 3))
        batches.append(PersisterStateBatch(first, last, state, count))
    return batches


class Script:
    """Chooses the steps; it looks at the state of our shard, and at its log."""

    def __init__(self, random: Random, driver: Driver) -> None:
        self._random = random
        self._driver = driver
        self._metadata = MetadataSteps(random)
        self._waiting: list[str] = [self._metadata.brokers()]

    def step(self) -> str:
        """Return the line of the next step."""
        if self._waiting:
            return self._waiting.pop(0)
        random = self._random
        kind = random.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
        failure = STORAGE_ERROR if random.random() < 0.03 else 0
        match kind:
            case "time":
                return f"time {self._driver.now + random.choice(LATER_MS)}"
            case "commit" | "load":
                return kind
            case "cold":
                return f"cold {failure}"
            case "image":
                line, deleted = self._metadata.topics_change()
                if deleted:
                    ids = " ".join(uuid_to_text(topic.topic_id) for topic in deleted)
                    self._waiting.append(f"topics {failure} {ids}")
                return line
            case "raw":
                return self._raw()
            case _:
                return f"{kind} {failure} {self._request(kind).hex()}"

    def _request(self, kind: str) -> bytes:
        key = self._key()
        topic_id, partition = key.topic_id, key.partition
        match kind:
            case "initialize":
                begin = InitializeShareGroupStateRequest.PartitionData(
                    partition, self._epoch(key, is_of_state=True), self._start_offset(key)
                )
                begun = InitializeShareGroupStateRequest.InitializeStateData(topic_id, [begin])
                return InitializeShareGroupStateRequest(key.group_id, [begun]).encode(0)
            case "write":
                return self._write(key)
            case "read":
                epoch = self._epoch(key, is_of_state=False)
                read = ReadShareGroupStateRequest.PartitionData(partition, epoch)
                asked = ReadShareGroupStateRequest.ReadStateData(topic_id, [read])
                return ReadShareGroupStateRequest(key.group_id, [asked]).encode(0)
            case "summary":
                one = ReadShareGroupStateSummaryRequest.PartitionData(partition, 0)
                summed = ReadShareGroupStateSummaryRequest.ReadStateSummaryData(topic_id, [one])
                return ReadShareGroupStateSummaryRequest(key.group_id, [summed]).encode(1)
            case _:
                gone = DeleteShareGroupStateRequest.PartitionData(partition)
                topic = DeleteShareGroupStateRequest.DeleteStateData(topic_id, [gone])
                return DeleteShareGroupStateRequest(key.group_id, [topic]).encode(0)

    def _write(self, key: SharePartitionKey) -> bytes:
        batches = random_batches(self._random, 60, 4)
        wanted = WriteShareGroupStateRequest.PartitionData(
            key.partition,
            state_epoch=self._epoch(key, is_of_state=True),
            leader_epoch=self._epoch(key, is_of_state=False),
            start_offset=self._start_offset(key),
            delivery_complete_count=self._random.choice((-1, 0, 1, 5, 20)),
            state_batches=[WriteShareGroupStateRequest.StateBatch(*one) for one in batches],
        )
        topic = WriteShareGroupStateRequest.WriteStateData(key.topic_id, [wanted])
        return WriteShareGroupStateRequest(key.group_id, [topic]).encode(1)

    def _key(self) -> SharePartitionKey:
        random = self._random
        known = [key for key, _ in self._driver.shard.states.items()]
        if known and random.random() < 0.7:
            return random.choice(known)
        topics = [*self._metadata.topics.values()]
        topic_id, count = ZERO_UUID, 1
        if topics and random.random() < 0.97:
            topic = random.choice(topics)
            topic_id, count = topic.topic_id, len(topic.replicas)
        partition = random.choice((*range(count), *range(count), *range(count), count, -1))
        return SharePartitionKey(random.choice(GROUPS), topic_id, partition)

    def _epoch(self, key: SharePartitionKey, *, is_of_state: bool) -> int:
        """Return the epoch that is known, most often, or one nearby."""
        kept = self._driver.shard.states.get(key)
        known = 0
        if kept is not None:
            known = kept.state_epoch_max if is_of_state else kept.leader_epoch_max
        return known + self._random.choice((0, 0, 0, 0, 0, 0, 1, 2, -1))

    def _start_offset(self, key: SharePartitionKey) -> int:
        kept = self._driver.shard.states.get(key)
        known = -1 if kept is None else kept.state.start_offset
        return self._random.choice(
            (-1, known, known, known, known + 1, known + 5, max(known - 1, -1))
        )

    def _raw(self) -> str:
        """Return a record of the log, again, or one that no request makes, or an unknown one."""
        random = self._random
        log: Sequence[tuple[bytes, bytes | None]] = self._driver.log
        if log and random.random() < 0.5:
            key_bytes, value = random.choice(log)
            return f"raw {key_bytes.hex()} {'~' if value is None else value.hex()}"
        state = ShareGroupOffset(
            snapshot_epoch=random.choice((0, 3)),
            state_epoch=random.choice((0, 2)),
            leader_epoch=random.choice((-1, 0, 4)),
            start_offset=random.choice((-1, 7)),
            delivery_complete_count=random.choice((-1, 3)),
            state_batches=tuple(random_batches(random, 60, 3)),
        )
        make = random.choice((share_snapshot_record, share_update_record))
        record = make(self._key(), state)
        value = record.value_bytes()
        assert value is not None
        return f"raw {record.key_bytes().hex()} {value.hex()}"
