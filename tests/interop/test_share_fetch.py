"""Records of share groups beside a real broker: equal answers to fetches and acknowledgements."""

from collections import Counter
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.clients.confluent import make_topics
from tests.interop.share_fetch_script import (
    GROUPS,
    TOPICS,
    UNKNOWN,
    Append,
    Fetch,
    Script,
    Side,
    fields_of,
)
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

STEPS: Final = 1500
HOUR_MS: Final = "3600000"
SETTINGS: Final = {
    "group.share.max.record.lock.duration.ms": HOUR_MS,
    "group.share.record.lock.duration.ms": HOUR_MS,
    "group.share.partition.max.record.locks": "100",
    "group.share.delivery.count.limit": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
UNKNOWN_ID: Final = b"none has this id"


def prepare(node: Node, client: RawClient) -> Side:
    """Make the topics, and begin the state of each share partition at the start of its log."""
    wishes = [TopicWish(name, partitions=count) for name, count in TOPICS.items()]
    make_topics(node.address, *wishes)
    described = client.ask(
        MetadataRequest([MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS]),
        MetadataResponse,
        12,
    )
    ids = {topic.name or "": topic.topic_id for topic in described.topics}
    share = SharePartitionKey(GROUPS[0], ids["one"], 0)
    node.process.wait_until(lambda: serves_share(client, share), "share partitions are served")
    request = InitializeShareGroupStateRequest
    for group in GROUPS:
        topics = [
            request.InitializeStateData(
                ids[name], [request.PartitionData(index, 1, 0) for index in range(count)]
            )
            for name, count in TOPICS.items()
        ]
        answered = client.ask(request(group, topics), InitializeShareGroupStateResponse, 0)
        assert not any(one.error_code for topic in answered.results for one in topic.partitions)
        wait_for(partial(_is_loaded, client, group, ids), "the states are read")
    return Side(client, {**ids, UNKNOWN: UNKNOWN_ID})


def _is_loaded(client: RawClient, group: str, ids: dict[str, bytes]) -> bool:
    """Return whether a broker fetches from all share partitions of a group."""
    request = ShareFetchRequest
    topics = [
        request.FetchTopic(ids[name], [request.FetchPartition(index) for index in range(count)])
        for name, count in TOPICS.items()
    ]
    answered = client.ask(
        request(group, "warming", 0, 300, 1, 1000, 10, 10, topics=topics), ShareFetchResponse, 1
    )
    places = [one for topic in answered.responses for one in topic.partitions]
    client.ask(request(group, "warming", -1), ShareFetchResponse, 1)
    return len(places) == sum(TOPICS.values()) and not any(one.error_code for one in places)


def states(side: Side) -> list[Any]:
    """Return what the share coordinator has kept of all share partitions."""
    request = ReadShareGroupStateRequest
    found: list[Any] = []
    for group in GROUPS:
        topics = [
            request.ReadStateData(
                side.topic_ids[name], [request.PartitionData(index, 0) for index in range(count)]
            )
            for name, count in TOPICS.items()
        ]
        answered = side.client.ask(request(group, topics), ReadShareGroupStateResponse, 0)
        found += [
            (group, side.names[topic.topic_id], fields_of(one))
            for topic in answered.results
            for one in topic.partitions
        ]
    return sorted(found, key=str)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_requests_have_the_same_answers(both_nodes: BothNodes) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    script = Script(Random(1))
    with (
        both_nodes(SETTINGS) as (theirs, ours),
        RawClient(theirs.address) as judge,
        RawClient(ours.address) as client,
    ):
        real, own = prepare(theirs, judge), prepare(ours, client)
        steps = list(script.first_steps())
        for number in range(STEPS):
            step = steps.pop(0) if steps else script.step()
            expected, found = step.take(real), step.take(own)
            assert found == expected, f"step {number}: {step}\n  ours {found}\n  real {expected}"
            script.saw(step, expected)
            if not isinstance(step, Append):
                code, _, _, partitions = expected
                seen[type(step).__name__, code] += 1
                for _, one in partitions:
                    seen["partition", one["error_code"]] += 1
                    seen["acquired", bool(one.get("acquired_records"))] += isinstance(step, Fetch)
        assert states(own) == states(real)
    for kind in (("Fetch", 122), ("Acknowledge", 123), ("partition", 42), ("partition", 121)):
        assert seen[kind], seen
    assert seen["acquired", True] > STEPS // 10, seen
