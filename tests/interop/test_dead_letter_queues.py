"""Dead-letter queues of share groups (KIP-1191): what a real broker writes to them, and ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.clients.confluent import make_topics, read_to_end
from tests.interop.share_fetch_script import Acknowledge, Batches, Fetch, Side
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.topics import read_topics, topic_id
from tests.support.waiting import wait_for

from kvorum.broker.share_partition.record_state import RecordState
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.configs_image import ResourceType
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
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
MEMBER: Final = "member"
SET: Final = 0
RELEASE, REJECT = 2, 3
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


class Range(NamedTuple):
    """Offsets of a partition that a member is done with, or gives back."""

    partition: int
    first: int
    last: int


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

    @property
    def group(self) -> str:
        return f"group of {self.queue}"


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


Headers: TypeAlias = list[tuple[str, bytes | None]]


class Letter(NamedTuple):
    """A record of a queue; the order within a partition is that in which records died."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


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


def configure(client: RawClient, case: Case) -> None:
    """Have the group name its queue."""
    values = {
        "errors.deadletterqueue.topic.name": case.queue,
        "errors.deadletterqueue.copy.record.enable": str(case.copies).lower(),
        **case.configs,
    }
    changes = [
        IncrementalAlterConfigsRequest.AlterableConfig(key, SET, value)
        for key, value in values.items()
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        ResourceType.GROUP, case.group, changes
    )
    request = IncrementalAlterConfigsRequest([resource])
    (answered,) = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert answered.error_code == ErrorCode.NONE, answered.error_message


def begin(client: RawClient, case: Case, source_id: bytes) -> None:
    """Have the group begin at the start of the source."""
    request = InitializeShareGroupStateRequest
    partitions = [request.PartitionData(index, 1, 0) for index in range(PARTITIONS)]
    state = request(case.group, [request.InitializeStateData(source_id, partitions)])
    (topic,) = client.ask(state, InitializeShareGroupStateResponse, 0).results
    assert not any(one.error_code for one in topic.partitions)


class Member:
    """The only member of a group, with its session at one broker."""

    def __init__(self, side: Side, group: str) -> None:
        self._side = side
        self._group = group
        self._epoch = 0

    def fetch(self) -> int:
        """Acquire what there is; return how many partitions gave records."""
        places = [(SOURCE, index) for index in range(PARTITIONS)]
        listed = places if self._epoch == 0 else ()
        fetch = Fetch(self._group, MEMBER, self._epoch, 1, 500, 100, 0, False, listed, (), ())
        code, message, _, found = fetch.take(self._side)
        assert code == ErrorCode.NONE, message
        self._epoch += 1
        return sum(bool(one["acquired_records"]) for _, one in found)

    def acknowledge(self, ranges: tuple[Range, ...], kind: int) -> None:
        batches = [Batches(SOURCE, where, [(first, last, [kind])]) for where, first, last in ranges]
        asked = Acknowledge(self._group, MEMBER, self._epoch, 1, False, batches)
        code, message, _, found = asked.take(self._side)
        assert code == ErrorCode.NONE, message
        assert not any(one["error_code"] for _, one in found), found
        self._epoch += 1


def is_over(client: RawClient, case: Case, source_id: bytes) -> bool:
    """Return whether all that dies is archived."""
    request = ReadShareGroupStateRequest
    partitions = [request.PartitionData(index, 0) for index in range(PARTITIONS)]
    asked = request(case.group, [request.ReadStateData(source_id, partitions)])
    (topic,) = client.ask(asked, ReadShareGroupStateResponse, 0).results
    archived = {
        (part.partition, offset)
        for part in topic.partitions
        for batch in part.state_batches
        if batch.delivery_state == RecordState.ARCHIVED
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    starts = {part.partition: part.start_offset for part in topic.partitions}
    return all(
        offset < starts[where] or (where, offset) in archived
        for where, first, last in (*case.rejected, *case.released)
        for offset in range(first, last + 1)
    )


def play(client: RawClient, case: Case, source_id: bytes) -> None:
    """Have records of a group die; return once they are archived."""
    configure(client, case)
    begin(client, case, source_id)
    member = Member(Side(client, {SOURCE: source_id}), case.group)
    wait_for(member.fetch, "the member has records")
    wait_for(lambda: member.fetch() == 0, "the member has all records")
    if case.rejected:
        member.acknowledge(case.rejected, REJECT)
    for delivery in range(DELIVERIES_MAX if case.released else 0):
        if delivery > 0:
            wait_for(member.fetch, "released records are delivered again")
        member.acknowledge(case.released, RELEASE)
    wait_for(partial(is_over, client, case, source_id), f"records of {case.queue} are archived")


def letters(address: str, queue: str) -> list[Letter]:
    """Return all records of a queue, by their partitions."""
    count = read_topics(address)[queue].partition_count
    places = [(queue, index) for index in range(count)]
    found = [
        Letter(one.partition(), one.key(), one.value(), tuple(cast("Headers", one.headers())))
        for one in read_to_end(address, places)
    ]
    return sorted(found, key=lambda letter: (letter.partition or 0, str(letter.headers)))


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
        wishes = [case.wish for case in CASES if case.wish is not None]
        make_topics(node.address, TopicWish(SOURCE, PARTITIONS), *wishes)
        source_id = topic_id(client, SOURCE)
        for index in range(PARTITIONS):
            share = SharePartitionKey(CASES[0].group, source_id, index)
            wait_for(partial(serves_share, client, share), "share states are served")
        append_records(client)
        for case in CASES:
            play(client, case, source_id)
            found[case.queue] = letters(node.address, case.queue)
            assert len(found[case.queue]) == case.letters, found[case.queue]
        found["configurations"] = own_configs(client, "dlq.created")
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_queues_have_the_same_records(both_nodes: BothNodes) -> None:
    with both_nodes(SETTINGS) as (theirs, ours):
        expected = outcome(theirs)
        assert outcome(ours) == expected
