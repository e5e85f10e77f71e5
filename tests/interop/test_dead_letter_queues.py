"""Dead-letter queues of share groups (KIP-1191): what a real broker writes to them, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.clients.confluent import make_topics
from tests.interop.dead_letters import (
    COPIES,
    QUEUE,
    REJECT,
    RELEASE,
    DyingGroup,
    Range,
    Source,
    letters,
)
from tests.support.clients.driver import TopicWish
from tests.support.group_configs import configure_group
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.topics import read_topics, topic_id, wait_until_led
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.configs_image import ResourceType
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch

SETTINGS: Final = {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
SOURCE: Final = "orders"
PARTITIONS: Final = 2
ENABLED: Final = MappingProxyType({"errors.deadletterqueue.group.enable": "true"})
DELIVERIES_MAX: Final = 2
SMALL_BYTES: Final = 1_000
LARGE_VALUE: Final = bytes(3_000)
TIMESTAMP_MS: Final = 1_700_000_000_000
OWN_HEADER: Final = ("of the producer", b"header")
SENT: Final = {
    0: [
        (Compression.NONE, 5, b"plain"),
        (Compression.LZ4, 5, b"packed"),
        (Compression.NONE, 2, LARGE_VALUE),
        (Compression.GZIP, 2, LARGE_VALUE),
    ],
    1: [(Compression.NONE, 4, b"other")],
}
"""The batches of each partition: compression, number of records, and the end of their values."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A group with a queue, and the ranges whose records die."""

    queue: str
    wish: TopicWish | None = None
    """The queue as it is there before, if it is."""
    copies: bool = False
    rejected: tuple[Range, ...] = ()
    released: tuple[Range, ...] = ()
    """Records that are released until they may be delivered no more."""
    letters: int = 0
    """The number of records that the queue has in the end."""
    configs: Mapping[str, str] = field(default_factory=dict[str, str])
    group_prefix: str = "group"

    @property
    def group(self) -> str:
        return f"{self.group_prefix} of {self.queue}"

    @property
    def creator(self) -> Case | None:
        """The case of another group that has the queue created; None where it is there before."""
        if self.wish is not None:
            return None
        return Case(queue=self.queue, group_prefix="creators", rejected=(Range(0, 0, 0),))

    @property
    def dying(self) -> tuple[Range, ...]:
        return (*self.rejected, *self.released)


CASES: Final = (
    Case(queue="dlq.created", rejected=(Range(0, 1, 3), Range(1, 0, 0)), letters=4),
    Case(
        queue="dlq.copies",
        wish=TopicWish("dlq.copies", 3, ENABLED),
        copies=True,
        rejected=(Range(0, 0, 13), Range(1, 1, 2)),
        letters=16,
    ),
    Case(
        queue="dlq.small",
        wish=TopicWish("dlq.small", 1, {**ENABLED, "max.message.bytes": str(SMALL_BYTES)}),
        copies=True,
        rejected=(Range(0, 0, 13),),
        letters=14,
    ),
    Case(
        queue="dlq.delivered",
        wish=TopicWish("dlq.delivered", 1, ENABLED),
        released=(Range(0, 0, 1),),
        letters=2,
        configs={"share.delivery.count.limit": str(DELIVERIES_MAX)},
    ),
    Case(queue="dlq.closed", wish=TopicWish("dlq.closed"), rejected=(Range(0, 0, 1),)),
    Case(queue="others", wish=TopicWish("others", 1, ENABLED), rejected=(Range(0, 0, 1),)),
)


def append_records(client: RawClient) -> None:
    for partition, batches in SENT.items():
        number = 0
        for compression, count, value in batches:
            records: list[RecordData] = []
            for _ in range(count):
                key = None if number % 3 == 0 else b"key %d" % number
                records.append(
                    RecordData(b"%d %s" % (number, value), key, TIMESTAMP_MS, [OWN_HEADER])
                )
                number += 1
            batch = bytes(build_batch(records, BatchOptions(compression=compression)))
            data = ProduceRequest.PartitionProduceData(partition, batch)
            topic = ProduceRequest.TopicProduceData(SOURCE, partition_data=[data])
            answered = client.ask(ProduceRequest(None, -1, 30_000, [topic]), ProduceResponse, 12)
            assert answered.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def configured(client: RawClient, case: Case, source: Source) -> DyingGroup:
    """Return the group of a case, with its configuration."""
    values = {QUEUE: case.queue, COPIES: str(case.copies).lower(), **case.configs}
    configure_group(client, case.group, values)
    return DyingGroup(case.group, source, client, client)


def play(case: Case, group: DyingGroup) -> None:
    """Have records of a group die; return once they are archived."""
    group.begin()
    group.acquire(sum(count for batches in SENT.values() for _, count, _ in batches))
    if case.rejected:
        group.acknowledge(case.rejected, REJECT)
    for delivery in range(DELIVERIES_MAX if case.released else 0):
        if delivery > 0:
            group.acquire(sum(last - first + 1 for _, first, last in case.released))
        group.acknowledge(case.released, RELEASE)
    wait_for(partial(group.are_archived, case.dying), f"records of {case.queue} are archived")


def own_configs(client: RawClient, topic: str) -> dict[str, str | None]:
    """Return the values that a topic has of its own."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(ResourceType.TOPIC, topic)
    (found,) = client.ask(DescribeConfigsRequest([resource]), DescribeConfigsResponse, 4).results
    of_topic = 1
    return {one.name: one.value for one in found.configs if one.config_source == of_topic}


def outcome(node: Node) -> dict[str, Any]:
    """Play all cases at a broker; return what is there in the end."""
    found: dict[str, Any] = {}
    with RawClient(node.address) as client:
        make_topics(node.address, TopicWish(SOURCE, PARTITIONS))
        source = Source(SOURCE, topic_id(client, SOURCE), PARTITIONS)
        creators = [case.creator for case in CASES if case.creator is not None]
        groups = {case.group: configured(client, case, source) for case in (*creators, *CASES)}
        # A broker that leads these knows what came before: a group without a queue has no letters.
        make_topics(node.address, *(case.wish for case in CASES if case.wish is not None))
        for index in range(PARTITIONS):
            share = SharePartitionKey(CASES[0].group, source.topic_id, index)
            wait_for(partial(serves_share, client, share), "share states are served")
        append_records(client)
        for case in CASES:
            if case.creator is not None:
                play(case.creator, groups[case.creator.group])
            # A real broker drops the letters for a queue whose leader does not know it yet.
            for index in range(read_topics(node.address)[case.queue].partition_count):
                wait_until_led(client, case.queue, partition=index)
            play(case, groups[case.group])
            found[case.queue] = letters(node.address, case.queue, case.group)
            assert len(found[case.queue]) == case.letters, found[case.queue]
        found["configurations"] = own_configs(client, "dlq.created")
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_queues_have_the_same_records(both_nodes: BothNodes) -> None:
    with both_nodes(SETTINGS) as (theirs, ours):
        expected = outcome(theirs)
        assert outcome(ours) == expected
