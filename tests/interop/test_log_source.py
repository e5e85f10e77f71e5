"""The rows of a running real broker's segments are the records that its consumers receive."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message, Producer
from tests.interop.clients.confluent import (
    end_transaction,
    make_topics,
    read_to_end,
    send,
    transactional_producer,
)
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S

from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.log_source.source import parse_options, planned_segments

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TRANSACTIONS = "payments"
PARTITIONS = 2
RECORDS = 400
ONE_REPLICA = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
}


class Received(NamedTuple):
    """A record as a consumer has it; the time is in milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@pytest.mark.slow
def test_rows_of_a_running_broker_are_what_consumers_receive(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path, ONE_REPLICA, java=java).format(tools=kafka_tools) as broker:
        servers = broker.address
        wishes = [*(TopicWish(name) for name in CODECS), TopicWish(TRANSACTIONS, PARTITIONS)]
        make_topics(servers, *wishes)
        for codec in CODECS:
            send_packed(servers, codec)
        unfinished = send_transactions(servers)
        rows = list(rows_below(broker.data))
        places = [(codec, 0) for codec in CODECS]
        places += [(TRANSACTIONS, partition) for partition in range(PARTITIONS)]
        everything, committed = (
            [*map(of_message, read_to_end(servers, places, isolation=isolation))]
            for isolation in ("read_uncommitted", "read_committed")
        )
        unfinished.abort_transaction(PATIENCE_S)
    plain = [row for row in rows if row["control_type"] is None]
    assert by_place(map(as_received, plain)) == by_place(everything)
    assert {row["compression"] for row in rows} == set(CODECS)
    states = [row["transaction"] for row in plain if row["topic"] == TRANSACTIONS]
    assert {*states} == {"committed", "aborted", "open", None}
    assert by_place(map(as_received, visible(plain))) == by_place(committed)
    assert len(everything) > len(committed) > len(CODECS) * RECORDS


def send_packed(servers: str, codec: str) -> None:
    """Send records with and without key, value and headers, in batches of a few."""
    records = [
        {
            "key": None if number % 5 == 0 else f"key-{number % 11}".encode(),
            "value": None if number % 7 == 0 else f"value {number} ".encode() * (number % 30),
            "headers": [("trace", b"%d" % number), ("trace", None)] if number % 3 == 0 else [],
            "timestamp": 1_700_000_000_000 + number * 1000,
        }
        for number in range(RECORDS)
    ]
    settings = {"enable_idempotence": codec in {"gzip", "zstd"}, "batch_num_messages": 37}
    send(servers, codec, records, compression_type=codec, **settings)


def send_transactions(servers: str) -> Producer:
    """Send transactions that are committed and aborted; return the producer of an open one."""
    plain = Producer({"bootstrap.servers": servers})
    one, other = (transactional_producer(servers, name) for name in ("one", "other"))
    for turn in range(4):
        for producer in (one, other):
            producer.begin_transaction()
        for number in range(10):
            for producer in (one, other):
                producer.produce(TRANSACTIONS, f"{turn}.{number}", partition=number % PARTITIONS)
        plain.produce(TRANSACTIONS, f"plain {turn}", partition=turn % PARTITIONS)
        # A transaction that is aborted before its records are sent has none in the log.
        for producer in (plain, one, other):
            assert producer.flush(PATIENCE_S) == 0
        end_transaction(one, is_committed=turn % 2 != 0)
        end_transaction(other, is_committed=turn % 3 == 0)
    one.begin_transaction()
    one.produce(TRANSACTIONS, "not ended", partition=0)
    assert one.flush(PATIENCE_S) == 0
    plain.produce(TRANSACTIONS, "behind the one that is open", partition=0)
    assert plain.flush(PATIENCE_S) == 0
    return one


def of_message(message: Message) -> Received:
    kind, timestamp = message.timestamp()
    assert kind != TIMESTAMP_NOT_AVAILABLE
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    place = (message.topic() or "", message.partition() or 0, message.offset() or 0)
    return Received(*place, timestamp, message.key(), message.value(), tuple(headers))


def rows_below(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of the topics, read beside the broker that has them open."""
    places = {"path": str(directory), "topics": ",".join((*CODECS, TRANSACTIONS))}
    options = parse_options({**places, "complete": "true", "maxPartitionBytes": "2000"})
    reading = Reading(options.columns, options.files.mode, has_gaps=options.has_gaps)
    for unit in planned_segments(options):
        for batch in range_rows(unit, reading):
            yield from batch.to_pylist()


def as_received(row: dict[str, Any]) -> Received:
    time_ms = round(row["timestamp"].timestamp() * 1000)
    headers = tuple((header["key"], header["value"]) for header in row["headers"])
    place = (row["topic"], row["partition"], row["offset"])
    return Received(*place, time_ms, row["key"], row["value"], headers)


def by_place(records: Iterable[Received]) -> list[Received]:
    return sorted(records, key=lambda one: (one.topic, one.partition, one.offset))


def visible(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what docs/spark/README.md says that a consumer with read_committed sees."""
    for row in rows:
        place = (row["topic"], row["partition"])
        is_behind_open = any(
            one["transaction"] == "open" and one["offset"] <= row["offset"]
            for one in rows
            if (one["topic"], one["partition"]) == place
        )
        if row["transaction"] in {None, "committed"} and not is_behind_open:
            yield row
