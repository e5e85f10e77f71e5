"""Our decoders of internal topics against the serdes with which Kafka reads and writes them."""

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.support.kafka.java import Java
from tests.support.random_messages import random_message

from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    CoordinatorTopic,
)
from kvorum.internal_topics.states import (
    DELIVERY_STATES,
    MEMBER_STATES,
    REMOTE_PARTITION_DELETE_STATES,
    REMOTE_SEGMENT_STATES,
    STREAMS_MEMBER_STATES,
    TRANSACTION_STATES,
)
from kvorum.metadata.record_frame import encode_record
from kvorum.spark.functions.consumer_offsets import CONSUMER_OFFSETS_RECORD
from kvorum.spark.functions.record_function import Row
from kvorum.spark.functions.remote_log_metadata import remote_log_metadata_row
from kvorum.spark.functions.share_group_state import SHARE_GROUP_STATE_RECORD
from kvorum.spark.functions.transaction_state import TRANSACTION_STATE_RECORD
from kvorum.wire.apis import message_class
from kvorum.wire.uuid_text import uuid_to_text


class TopicRecord(NamedTuple):
    """A record of an internal topic as it is stored."""

    topic: str
    key: bytes | None
    value: bytes | None


class Answer(NamedTuple):
    """The reading of a record by Kafka: bytes that it writes itself, and JSON; or a refusal."""

    key: bytes | None
    value: bytes | None
    json: dict[str, Any]
    refusal: str


@dataclass(frozen=True)
class InternalTopics:
    java: Java

    def facts(self) -> dict[str, dict[str, str]]:
        """Return the record types of each topic, and the states that records hold, by number."""
        found: dict[str, dict[str, str]] = json.loads("\n".join(self._answers("facts")))
        return found

    def remote_log_values(self) -> list[bytes]:
        """Return a value of each record type of tiered storage, made by Kafka's serde."""
        return [bytes.fromhex(line) for line in self._answers("remote")]

    def echo(self, records: Iterable[TopicRecord]) -> list[Answer]:
        asked = (f"{topic} {_text(key)} {_text(value)}" for topic, key, value in records)
        return [_answer(line) for line in self._answers("echo", asked)]

    def _answers(self, mode: str, asked: Iterable[str] = ()) -> list[str]:
        return self.java.answers("InternalTopics", mode, asked=asked, heap_mb=512)


def _answer(line: str) -> Answer:
    if line.startswith("!"):
        return Answer(None, None, {}, line[2:])
    key, value, text = line.split(" ", 2)
    return Answer(_bytes(key), _bytes(value), json.loads(text), "")


def _text(data: bytes | None) -> str:
    return "-" if data is None else data.hex() or "."


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else b"" if text == "." else bytes.fromhex(text)


pytestmark = pytest.mark.sample


COORDINATORS = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
ROWS = {
    CONSUMER_OFFSETS.name: CONSUMER_OFFSETS_RECORD,
    TRANSACTION_STATE.name: TRANSACTION_STATE_RECORD,
    SHARE_GROUP_STATE.name: SHARE_GROUP_STATE_RECORD,
}
REMOTE = "__remote_log_metadata"
REMOTE_MESSAGES = (
    "RemoteLogSegmentMetadataRecord",
    "RemoteLogSegmentMetadataUpdateRecord",
    "RemotePartitionDeleteMetadataRecord",
    "RemoteLogSegmentMetadataSnapshotRecord",
)
RECORDS_PER_VERSION = 60
DAMAGED_PER_RECORD = 3
SEED = 431
STRICTER = re.compile(r": tag \d+ (?:of|ends at|comes after) | has no version \d+ \(known are ")


@pytest.fixture(scope="module")
def kafka(java: Java) -> InternalTopics:
    return InternalTopics(java)


def row_of(record: TopicRecord) -> Row:
    if record.topic in ROWS:
        row = ROWS[record.topic].row(record.key, record.value)
    else:
        row = remote_log_metadata_row(record.value)
    assert row is not None
    return row


def coordinator_records(topic: CoordinatorTopic, random: Random) -> Iterator[TopicRecord]:
    """Yield random records of every type and version, and a tombstone of each type."""
    for type_id, name in topic.messages.items():
        key, value = message_class(f"{name}Key"), message_class(f"{name}Value")
        for version in range(value.MIN_VERSION, value.MAX_VERSION + 1):
            for number in range(RECORDS_PER_VERSION):
                data = random_message(value, version, random).encode(version)
                yield TopicRecord(
                    topic.name,
                    struct.pack(">h", type_id) + random_message(key, 0, random).encode(0),
                    None if number == 0 else struct.pack(">h", version) + data,
                )


def remote_records(random: Random) -> Iterator[TopicRecord]:
    for name in REMOTE_MESSAGES:
        kind = message_class(name)
        for _ in range(RECORDS_PER_VERSION):
            yield TopicRecord(REMOTE, None, encode_record(random_message(kind, 0, random), 0))


def every_record(random: Random) -> list[TopicRecord]:
    found = [record for topic in COORDINATORS for record in coordinator_records(topic, random)]
    return [*found, *remote_records(random)]


def loaded(row: Row, column: str) -> Any:
    return json.loads(row[column]) if column in row else None


def shown(row: Row) -> dict[str, Any]:
    """Return of a result what Kafka's converters give for the same record."""
    if "json" in row:
        return {"type": row["type"], "version": row["version"], "value": loaded(row, "json")}
    found = {"type": row["type_id"], "key": loaded(row, "key_json")}
    if row["is_tombstone"]:
        return found
    return {**found, "version": row["value_version"], "value": loaded(row, "value_json")}


def numbered(names: Mapping[int, str]) -> dict[str, str]:
    return {str(number): name for number, name in names.items()}


def test_types_and_states_are_kafkas(kafka: InternalTopics) -> None:
    types = {
        topic.name: {
            str(type_id): topic.decode_key(empty_key(topic, type_id)).type
            for type_id in topic.messages
        }
        for topic in COORDINATORS
    }
    remote = [
        remote_log_metadata_row(encode_record(message_class(name)(), 0)) for name in REMOTE_MESSAGES
    ]
    assert kafka.facts() == {
        **types,
        REMOTE: {str(number): row["type"] for number, row in enumerate(remote) if row},
        "TransactionState": numbered(TRANSACTION_STATES),
        "RecordState": numbered(DELIVERY_STATES),
        "MemberState": numbered(MEMBER_STATES),
        "StreamsMemberState": numbered(STREAMS_MEMBER_STATES),
        "RemoteLogSegmentState": numbered(REMOTE_SEGMENT_STATES),
        "RemotePartitionDeleteState": numbered(REMOTE_PARTITION_DELETE_STATES),
    }


def empty_key(topic: CoordinatorTopic, type_id: int) -> bytes:
    return struct.pack(">h", type_id) + message_class(f"{topic.messages[type_id]}Key")().encode(0)


def test_we_decode_what_kafka_writes_of_every_type_and_version(kafka: InternalTopics) -> None:
    records = every_record(Random(SEED))
    counts: Counter[tuple[str, str, int | None]] = Counter()
    for record, answer in zip(records, kafka.echo(records), strict=True):
        assert not answer.refusal, record
        row = row_of(TopicRecord(record.topic, answer.key, answer.value))
        assert "error" not in row
        assert shown(row) == answer.json
        counts[record.topic, row["type"], row.get("value_version")] += 1
    # 22 types of groups with 8 more versions of two of them, one of transactions with two versions,
    # two of share groups and four of tiered storage; and tombstones of all but the latter.
    assert len(counts) == (22 + 8 + 2 + 2 + 4) + (22 + 1 + 2)


def damaged(record: TopicRecord, random: Random) -> TopicRecord:
    """Damage the key or the value, one that has bytes."""
    if record.value and (not record.key or random.random() < 0.5):
        return record._replace(value=spoiled(record.value, random))
    return record._replace(key=spoiled(record.key or b"", random))


def spoiled(data: bytes, random: Random) -> bytes:
    if random.random() < 0.3:
        return data[: random.randrange(len(data))]
    position = random.randrange(len(data))
    flipped = bytes([data[position] ^ 1 << random.randrange(8)])
    return data[:position] + flipped + data[position + 1 :]


def test_no_damaged_record_is_read_that_kafka_refuses(kafka: InternalTopics) -> None:
    """Ours refuses a little more: tagged fields of a wrong size or order, and versions to come."""
    random = Random(SEED + 1)
    records = [
        damaged(record, random)
        for record in every_record(random)
        for _ in range(DAMAGED_PER_RECORD)
    ]
    outcomes = Counter(
        compare(record, answer) for record, answer in zip(records, kafka.echo(records), strict=True)
    )
    assert min(outcomes["both refuse"], outcomes["both read"]) > 1_000
    assert outcomes["only ours refuses"] < 0.01 * outcomes.total()


def compare(record: TopicRecord, answer: Answer) -> str:
    row = row_of(record)
    if "error" in row:
        if answer.refusal:
            return "both refuse"
        assert STRICTER.search(row["error"]), (record, row, answer)
        return "only ours refuses"
    assert not answer.refusal, (record, row, answer)
    assert shown(row) == answer.json, record
    return "both read"


def test_records_of_tiered_storage_made_by_kafkas_serde(kafka: InternalTopics) -> None:
    topic_id, segment_id = (uuid_to_text(struct.pack(">qq", *pair)) for pair in ((1, 2), (3, 4)))
    partition = {"topic_name": "orders", "topic_id": topic_id, "partition_id": 7}
    contents = {
        "segment_id": segment_id, "start_offset": 100, "end_offset": 199,
        "segment_size_in_bytes": 4096,
        "segment_leader_epochs": [
            {"leader_epoch": 0, "offset": 100}, {"leader_epoch": 3, "offset": 150},
        ],
    }  # fmt: skip
    rows = [remote_log_metadata_row(value) or {} for value in kafka.remote_log_values()]
    assert [{column: row[column] for column in row if column != "json"} for row in rows] == [
        {
            "type": "REMOTE_LOG_SEGMENT_METADATA_RECORD", "version": 0, **partition, **contents,
            "state": "COPY_SEGMENT_STARTED", "broker_id": 11,
            "max_timestamp": 1_700_000_000_001_000, "event_timestamp": 1_700_000_000_002_000,
        },
        {
            "type": "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD", "version": 0, **partition,
            "segment_id": segment_id, "state": "DELETE_SEGMENT_FINISHED", "broker_id": 12,
            "event_timestamp": 1_700_000_000_003_000,
        },
        {
            "type": "REMOTE_PARTITION_DELETE_METADATA_RECORD", "version": 0, **partition,
            "state": "DELETE_PARTITION_STARTED", "broker_id": 13,
            "event_timestamp": 1_700_000_000_004_000,
        },
        {
            "type": "REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD", "version": 0, **contents,
            "state": "COPY_SEGMENT_FINISHED", "broker_id": 14,
            "max_timestamp": 1_700_000_000_005_000, "event_timestamp": 1_700_000_000_006_000,
        },
    ]  # fmt: skip
