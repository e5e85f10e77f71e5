"""Consumers read from a follower in their rack (KIP-392), as with real brokers."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from itertools import product
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.waiting import wait_for

from kvorum.broker.replica_selector import RACK_AWARE
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

TOPIC: Final = "read"
RECORDS: Final = 20
LEADER, FOLLOWER, STRANGER = 11, 12, 13
"""The last one has no replica."""
SETTINGS: Final = {"replica.selector.class": RACK_AWARE, "broker.rack": "rack-{node_id}"}
VERSIONS: Final = (10, 11, 12)
RACKS: Final = ("", *(f"rack-{broker}" for broker in (LEADER, FOLLOWER, STRANGER)))
OFFSETS: Final = (0, RECORDS, RECORDS + 1)


class Answer(NamedTuple):
    """The answer of a broker to a fetch."""

    error_code: int
    preferred_read_replica: int
    has_records: bool
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


@contextmanager
def running(run_brokers: RunBrokers, ours: frozenset[int]) -> Generator[BrokerCluster]:
    with run_brokers(brokers=3, ours=ours, settings=SETTINGS) as cluster:
        cluster.make_topic(TOPIC, f"{LEADER}:{FOLLOWER}")
        with RawClient(cluster.brokers[LEADER].address) as client:
            wait_until_it_leads(client)
            for number in range(RECORDS):
                assert produce(client, TOPIC, batch(b"%d" % number)).error_code == ErrorCode.NONE
        yield cluster


def wait_until_it_leads(client: RawClient) -> None:
    """Wait until the leader itself knows the topic: another broker may know it earlier."""

    def error() -> int:
        wish = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=0)
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(TOPIC, [wish])
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])
        (topic,) = client.ask(request, OffsetForLeaderEpochResponse, 4).topics
        return topic.partitions[0].error_code

    wait_for(lambda: error() == ErrorCode.NONE, "the leader knows the topic", otherwise=error)


def answers(cluster: BrokerCluster) -> dict[tuple[int, int, str, int], Answer]:
    """Ask both replicas in all versions, from all racks, at all offsets."""
    found: dict[tuple[int, int, str, int], Answer] = {}
    for broker in (LEADER, FOLLOWER):
        with RawClient(cluster.brokers[broker].address) as client:
            wait_until_committed(client)
            for version, rack, offset in product(VERSIONS, RACKS, OFFSETS):
                found[broker, version, rack, offset] = ask(client, version, rack, offset)
    return found


def wait_until_committed(client: RawClient) -> None:
    """Wait until a broker knows that everything is committed."""
    wait_for(
        lambda: ask(client, VERSIONS[-1], "", 0).high_watermark == RECORDS,
        "the broker knows that everything is committed",
        otherwise=lambda: ask(client, VERSIONS[-1], "", 0),
    )


def ask(client: RawClient, version: int, rack: str, offset: int) -> Answer:
    wish = FetchRequest.FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        min_bytes=0,
        max_wait_ms=0,
        max_bytes=1 << 20,
        rack_id=rack if version >= VERSIONS[1] else "",
        topics=[FetchRequest.FetchTopic(TOPIC, partitions=[wish])],
    )
    (topic,) = client.ask(request, FetchResponse, version).responses
    (data,) = topic.partitions
    return Answer(
        data.error_code,
        data.preferred_read_replica,
        bool(data.records),
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
    )


@pytest.mark.slow
def test_brokers_answer_as_real_ones_and_a_consumer_reads_from_the_follower(
    run_brokers: RunBrokers,
) -> None:
    with running(run_brokers, frozenset()) as real:
        expected = answers(real)
    assert {key for key, answer in expected.items() if answer.preferred_read_replica >= 0} == {
        (LEADER, version, f"rack-{FOLLOWER}", offset)
        for version in VERSIONS[1:]
        for offset in (0, RECORDS)
    }
    with running(run_brokers, frozenset({LEADER, FOLLOWER, STRANGER})) as ours:
        assert answers(ours) == expected
        assert fetches_of_consumer(ours, f"rack-{FOLLOWER}") == {FOLLOWER}
        assert fetches_of_consumer(ours, f"rack-{STRANGER}") == {LEADER}


def fetches_of_consumer(cluster: BrokerCluster, rack: str) -> set[int]:
    """Have a consumer in a rack read everything; return the brokers that sent records."""
    received: dict[int, int] = {}

    def on_statistics(text: str) -> None:
        for broker in json.loads(text)["brokers"].values():
            if broker["nodeid"] in cluster.brokers:
                received[broker["nodeid"]] = broker["req"]["Fetch"]

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.servers,
            "group.id": "reader",
            "client.rack": rack,
            "statistics.interval.ms": 50,
            "stats_cb": on_statistics,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []

    def has_read() -> bool:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            values.append(message.value() or b"")
        return len(values) >= RECORDS

    wait_for(has_read, f"{RECORDS} records are read", otherwise=lambda: len(values))
    assert values == [b"%d" % number for number in range(RECORDS)]
    before = dict(received)

    def asks_on() -> set[int] | None:
        consumer.poll(0.1)
        return {one for one, count in received.items() if count > before.get(one, 0) + 3} or None

    try:
        return wait_for(asks_on, "the consumer goes on asking", otherwise=lambda: received)
    finally:
        consumer.close()
