"""Random requests about groups, beside a real broker: equal answers, and equal records."""

import os
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.group_script import TOPICS, Script
from tests.interop.group_servers import (
    PARTITIONS,
    SETTINGS,
    Server,
    batches,
    coordinates,
    topic_ids,
)
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient

from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorResponse
from kvorum.wire.messages.list_groups import ListGroupsResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchResponse

STEPS: Final = int(os.environ.get("KVORUM_GROUP_STEPS", "2500"))
SEED: Final = int(os.environ.get("KVORUM_GROUP_SEED", "1"))


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes(SETTINGS) as (real, ours):
        for node in (real, ours):
            wishes = [TopicWish(name, partitions=PARTITIONS) for name in TOPICS]
            make_topics(node.address, *wishes)
            with RawClient(node.address) as client:
                node.process.wait_until(lambda: coordinates(client), "every group is coordinated")
                node.process.wait_until(lambda: knows_topics(client), "the topics are known")
        yield real, ours


def knows_topics(client: RawClient) -> bool:
    return len(topic_ids(client)) == len(TOPICS)


def _sort_topics(topics: list[Any], server: Server) -> None:
    for topic in topics:
        partitions: list[Any] = topic.partitions
        partitions.sort(key=_partition_index)
    topics.sort(key=lambda one: server.common(repr(one)))


def _partition_index(partition: Any) -> int:
    return int(partition.partition_index)


def in_order(response: Any, server: Server) -> Any:
    """Sort what comes in no order, and leave out the port."""
    match response:
        case ListGroupsResponse():
            response.groups.sort(key=lambda one: one.group_id)
        case DeleteGroupsResponse():
            response.results.sort(key=lambda one: one.group_id)
        case DescribeGroupsResponse():
            response.groups.sort(key=lambda one: one.group_id)
        case FindCoordinatorResponse():
            placed: list[Any] = [response, *response.coordinators]
            for one in placed:
                one.port = min(one.port, 1)
        case OffsetFetchResponse():
            _sort_topics(response.topics, server)
            for group in response.groups:
                _sort_topics(group.topics, server)
        case _:
            pass
    return response


@pytest.mark.slow
def test_answers_and_records_are_those_of_kafka(nodes: tuple[Node, Node]) -> None:
    real, ours = nodes
    script = Script(Random(SEED))
    with RawClient(real.address) as one, RawClient(ours.address) as other:
        theirs, mine = (Server(client, topic_ids(client)) for client in (one, other))
        for number, step in enumerate(script.steps(STEPS)):
            answers = [in_order(server.ask(step), server) for server in (theirs, mine)]
            expected, got = (
                server.common(repr(answer))
                for server, answer in zip((theirs, mine), answers, strict=True)
            )
            assert got == expected, f"step {number}: {step}\n  expected {expected}\n  got {got}"
            if hasattr(answers[0], "member_id"):
                answers[0].member_id = theirs.common(answers[0].member_id)
            script.saw(step, answers[0])
    real.stop()
    ours.stop()
    for partition in range(PARTITIONS):
        expected_log = batches(real.data / f"__consumer_offsets-{partition}", theirs)
        assert batches(ours.data / f"__consumer_offsets-{partition}", mine) == expected_log
        assert expected_log
