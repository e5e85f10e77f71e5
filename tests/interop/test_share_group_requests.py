"""Share groups beside a real broker: the answers to their members and to administrators."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import pytest
from tests.interop.asked_broker import INTERNAL_TOPICS, serves_share
from tests.interop.clients.confluent import make_topics
from tests.interop.group_script import coordinates
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id, wait_until_led

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.apis import response_class
from kvorum.wire.json_form import to_json
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.delete_groups import DeleteGroupsRequest
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kvorum.wire.messages.list_groups import ListGroupsRequest
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

SETTINGS: Final = {**INTERNAL_TOPICS, "group.share.assignment.interval.ms": "0"}
TOPICS: Final = {"one": 2, "two": 3}
GROUP: Final = "shared"
ALL: Final = None


class Side:
    """One of the two brokers, with the ids that the topics have there."""

    def __init__(self, node: Node, client: RawClient) -> None:
        self._node = node
        self._client = client
        make_topics(node.address, *(TopicWish(name, partitions=n) for name, n in TOPICS.items()))
        for name in TOPICS:
            wait_until_led(client, name)
        self._ids = {uuid_to_text(topic_id(client, name)): name for name in TOPICS}
        share = SharePartitionKey(GROUP, topic_id(client, "one"), 0)
        node.process.wait_until(lambda: serves_share(client, share), "share state is kept")
        node.process.wait_until(lambda: coordinates(client), "groups are served")

    def ask(self, request: Message, version: int) -> Any:
        """Return the answer with the names of topics for their ids, and lists in one order."""
        assert request.API_KEY is not None
        response = self._client.ask(request, response_class(request.API_KEY), version)
        return self._common(to_json(response, version))

    def wait_for(self, request: Message, version: int, is_there: Callable[[Any], bool]) -> None:
        """Ask until an answer shows something."""
        self._node.process.wait_until(
            lambda: is_there(self.ask(request, version)), f"{request} shows it"
        )

    def _common(self, value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("Mapping[str, Any]", value)
            return {key: self._common(each) for key, each in fields.items()}
        if isinstance(value, list):
            return sorted(map(self._common, cast("Sequence[Any]", value)), key=str)
        return self._ids.get(value, value) if isinstance(value, str) else value


def heartbeat(
    epoch: int, names: list[str] | None = None, member_id: str = "m", **others: Any
) -> tuple[Message, int]:
    group_id = others.pop("group_id", GROUP)
    request = ShareGroupHeartbeatRequest(group_id, member_id, epoch, None, names)
    for name, value in others.items():
        setattr(request, name, value)
    return request, 1


def described(*group_ids: str) -> tuple[Message, int]:
    return ShareGroupDescribeRequest([*group_ids], True), 1


def offsets(
    version: int, *topics: tuple[str, list[int]], group_id: str = GROUP
) -> tuple[Message, int]:
    named = [DescribeShareGroupOffsetsRequestTopic(*topic) for topic in topics]
    group = DescribeShareGroupOffsetsRequestGroup(group_id, named or ALL)
    return DescribeShareGroupOffsetsRequest([group]), version


def altered(*topics: tuple[str, list[int]], group_id: str = GROUP) -> tuple[Message, int]:
    wanted = [
        AlterShareGroupOffsetsRequestTopic(
            name, [AlterShareGroupOffsetsRequestPartition(one, 5) for one in partitions]
        )
        for name, partitions in topics
    ]
    return AlterShareGroupOffsetsRequest(group_id, wanted), 0


def deleted(*topics: str, group_id: str = GROUP) -> tuple[Message, int]:
    wanted = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
    return DeleteShareGroupOffsetsRequest(group_id, wanted), 0


def of_other_protocols() -> Iterator[tuple[Message, int]]:
    """Yield requests of other protocols about the share group."""
    protocols = [JoinGroupRequestProtocol("range", b"")]
    yield JoinGroupRequest(GROUP, 10_000, 10_000, "", None, "consumer", protocols), 5
    yield HeartbeatRequest(GROUP, 1, "m"), 4
    yield ConsumerGroupHeartbeatRequest(GROUP, "m", 1), 1
    yield OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP, topics=None)]), 9
    yield DescribeGroupsRequest([GROUP]), 6
    yield ListGroupsRequest(types_filter=["share"]), 5


REFUSED: Final = (
    heartbeat(0, ["one"], ""),
    heartbeat(0, ["one"], "m" * 37),
    heartbeat(0, ["one"], " "),
    heartbeat(0, []),
    heartbeat(0),
    heartbeat(0, ["one"], rack_id=""),
    heartbeat(0, ["one"], group_id=" "),
    heartbeat(-2),
    heartbeat(-1),
    heartbeat(3),
    described("", "absent"),
    offsets(1, group_id="absent"),
    offsets(0, ("one", [0]), ("absent", [1]), group_id="absent"),
    altered(group_id=""),
    deleted("one", group_id=""),
    deleted("one", group_id="absent"),
)
WITH_MEMBER: Final = (
    heartbeat(3, ["one"]),
    heartbeat(2),
    heartbeat(7),
    heartbeat(0, ["one"]),
    heartbeat(3, ["one"], "stranger"),
    described(GROUP),
    offsets(0),
    offsets(1),
    offsets(1, ("two", [0]), ("one", [1])),
    altered(("one", [0])),
    deleted("one"),
    (DeleteGroupsRequest([GROUP]), 2),
)
WITHOUT_MEMBERS: Final = (
    heartbeat(-1),
    described(GROUP),
    altered(("one", [0, 9]), ("two", [1]), ("absent", [0])),
)
AFTERWARDS: Final = (
    offsets(0),
    offsets(1),
    deleted("one", "absent"),
    offsets(1),
    deleted("one"),
    described(GROUP),
    (DeleteGroupsRequest([GROUP, "absent"]), 2),
    described(GROUP),
    altered(("two", [0]), group_id="new"),
    (ListGroupsRequest(types_filter=["share"]), 5),
)


def has_partitions(answer: Any) -> bool:
    return bool(answer["assignment"]) and bool(answer["assignment"]["topicPartitions"])


def shows_both(answer: Any) -> bool:
    (group,) = answer["groups"]
    return len(group["topics"]) == len(TOPICS)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_members_and_administrators_have_the_answers_of_kafka(both_nodes: BothNodes) -> None:
    with (
        both_nodes(SETTINGS) as (theirs, ours),
        RawClient(theirs.address) as judge,
        RawClient(ours.address) as client,
    ):
        sides = Side(theirs, judge), Side(ours, client)

        def compare(*asked: tuple[Message, int]) -> None:
            for request, version in asked:
                expected, found = (side.ask(request, version) for side in sides)
                assert found == expected, f"{request}\n  ours {found}\n  real {expected}"

        compare(*REFUSED)
        for side in sides:
            side.wait_for(*heartbeat(0, ["one"]), has_partitions)
        compare(*WITH_MEMBER, *of_other_protocols(), *WITHOUT_MEMBERS)
        for side in sides:
            side.wait_for(*offsets(1), shows_both)
        compare(*AFTERWARDS)
