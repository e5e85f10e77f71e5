"""Requests about share groups: the cluster's feature, permissions, and the form of refusals."""

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

import pytest
from immutables import Map
from tests.unit.node.permitted_clients import allowing, incoming
from tests.unit.node.sharing_groups import ORDERS, PAYMENTS, Sharing

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import SHARE_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access
from kvorum.node.coroutines import Promise, Task, Wait
from kvorum.node.handlers import (
    alter_share_group_offsets,
    delete_groups,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_describe,
    share_group_heartbeat,
)
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.tasks import run
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.delete_groups import DeleteGroupsRequest
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kvorum.wire.primitives import Message

Permission: TypeAlias = tuple[AclOperation, AclResourceType, str]
APIS: Final[dict[type[Message], BrokerApi[Any]]] = {
    ShareGroupHeartbeatRequest: share_group_heartbeat.API,
    ShareGroupDescribeRequest: share_group_describe.API,
    DescribeShareGroupOffsetsRequest: describe_share_group_offsets.API,
    AlterShareGroupOffsetsRequest: alter_share_group_offsets.API,
    DeleteShareGroupOffsetsRequest: delete_share_group_offsets.API,
    DeleteGroupsRequest: delete_groups.API,
}
READ_GROUP: Final = (AclOperation.READ, AclResourceType.GROUP, "g")
DESCRIBE_GROUP: Final = (AclOperation.DESCRIBE, AclResourceType.GROUP, "g")
DELETE_GROUP: Final = (AclOperation.DELETE, AclResourceType.GROUP, "g")
READ_ORDERS: Final = (AclOperation.READ, AclResourceType.TOPIC, "orders")
DESCRIBE_ORDERS: Final = (AclOperation.DESCRIBE, AclResourceType.TOPIC, "orders")
GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNSUPPORTED: Final = ErrorCode.UNSUPPORTED_VERSION
ALTERED_TO: Final = 42


def heartbeat(epoch: int = 0, member_id: str = "m", *names: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest("g", member_id, epoch, None, [*names] or ["orders"])


def offsets(*names: str) -> DescribeShareGroupOffsetsRequest:
    """Return the request for partition 0 of topics; for all offsets without one."""
    topics = [DescribeShareGroupOffsetsRequestTopic(name, [0]) for name in names]
    group = DescribeShareGroupOffsetsRequestGroup("g", topics or None)
    return DescribeShareGroupOffsetsRequest([group])


def altered(*names: str) -> AlterShareGroupOffsetsRequest:
    partitions = [AlterShareGroupOffsetsRequestPartition(0, ALTERED_TO)]
    topics = [AlterShareGroupOffsetsRequestTopic(name, partitions) for name in names]
    return AlterShareGroupOffsetsRequest("g", topics)


def deleted(*names: str) -> DeleteShareGroupOffsetsRequest:
    topics = [DeleteShareGroupOffsetsRequestTopic(name) for name in names]
    return DeleteShareGroupOffsetsRequest("g", topics)


class Asked(Sharing):
    """A coordinator of share groups that is asked by way of the handlers."""

    level = 1
    """The level of share.version."""

    async def answer(self, body: Message, access: Access = UNRESTRICTED) -> Any:
        """Return the response, or the one that refuses the request."""
        try:
            return await run(self.answering(body, access))
        except RequestError as error:
            return APIS[type(body)].refuse(body, error, body.MAX_VERSION)

    def answering(
        self, body: Message, access: Access = UNRESTRICTED
    ) -> Coroutine[Wait[Any], Any, Any]:
        """Return the coroutine of the handler of a request."""
        features = FeaturesImage(levels=Map({SHARE_VERSION_FEATURE: self.level}))
        published = SimpleNamespace(features=features, topics=self.image.topics)
        broker = SimpleNamespace(
            share_groups=self.share,
            loader=SimpleNamespace(published=published),
            runtime=self.runtime,
        )
        request = incoming(body, body.MAX_VERSION, access)
        return APIS[type(body)].answer(request, cast("BrokerServices", broker))

    def answer_nobody(self, body: Message) -> None:
        """Begin to answer a request whose client's connection ends at once."""
        Task(self.answering(body), lambda _: None).close()


@pytest.fixture
async def node() -> Asked:
    """A broker that leads its partition, and whose metadata has both topics."""
    node = Asked()
    await node.begin()
    return node


def problem(response: Any) -> tuple[ErrorCode, str | None]:
    """Return the code and the text of a response, or of its only group."""
    found = response.groups[0] if hasattr(response, "groups") else response
    return ErrorCode(found.error_code), found.error_message


ALL_REQUESTS: Final = (
    (heartbeat(), None),
    (ShareGroupDescribeRequest(["g"]), None),
    (offsets(), None),
    (altered("orders"), UNSUPPORTED.default_message),
    (deleted("orders"), UNSUPPORTED.default_message),
)


@pytest.mark.parametrize(("body", "text"), ALL_REQUESTS)
async def test_share_groups_are_refused_without_the_feature(
    node: Asked, body: Message, text: str | None
) -> None:
    node.level = 0
    assert problem(await node.answer(body, allowing())) == (UNSUPPORTED, text)


@pytest.mark.parametrize(
    ("body", "other_operation"),
    [
        (heartbeat(), DESCRIBE_GROUP),
        (ShareGroupDescribeRequest(["g"]), (AclOperation.DELETE, AclResourceType.GROUP, "h")),
        (offsets(), (AclOperation.DESCRIBE, AclResourceType.GROUP, "h")),
        (altered("orders"), DELETE_GROUP),
        (deleted("orders"), READ_GROUP),
    ],
)
async def test_each_request_needs_its_operation_on_the_group(
    node: Asked, body: Message, other_operation: Permission
) -> None:
    code, _ = problem(await node.answer(body, allowing(other_operation)))
    assert code is GROUP_DENIED


@pytest.mark.parametrize(
    ("body", "allowed", "found"),
    [
        (heartbeat(0, ""), [READ_GROUP], (ErrorCode.INVALID_REQUEST, None)),
        (heartbeat(0, "m" * 37), [READ_GROUP], (ErrorCode.INVALID_REQUEST, None)),
        (heartbeat(), [READ_GROUP], (TOPIC_DENIED, None)),
        (
            heartbeat(0, "m", "orders", "payments"),
            [READ_GROUP, DESCRIBE_ORDERS],
            (TOPIC_DENIED, None),
        ),
        (heartbeat(0, "m" * 36), [READ_GROUP, DESCRIBE_ORDERS], (ErrorCode.NONE, None)),
        (
            heartbeat(-2),
            [READ_GROUP, DESCRIBE_ORDERS],
            (ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
        ),
    ],
)
async def test_a_member_needs_an_id_and_the_topics_that_it_names(
    node: Asked,
    body: Message,
    allowed: list[Permission],
    found: tuple[ErrorCode, str | None],
) -> None:
    assert problem(await node.answer(body, allowing(*allowed))) == found


async def test_a_group_with_an_assigned_topic_that_the_client_may_not_describe_is_hidden(
    node: Asked,
) -> None:
    await node.heartbeat(0, ["orders"])
    await node.until(lambda: bool(node.initialized()))
    await node.heartbeat(2)
    described = ShareGroupDescribeRequest(["g"])
    assert problem(await node.answer(described, allowing(DESCRIBE_GROUP)))[0] is TOPIC_DENIED
    (shown,) = (await node.answer(described, allowing(DESCRIBE_GROUP, DESCRIBE_ORDERS))).groups
    assert len(shown.members) == 1


async def test_only_offsets_of_topics_that_the_client_may_describe_are_shown(node: Asked) -> None:
    await node.answer(altered("orders", "payments"))
    await node.until(lambda: len(node.initialized()) == 2)
    access = allowing(DESCRIBE_GROUP, DESCRIBE_ORDERS)
    (every,) = (await node.answer(offsets(), access)).groups
    assert [topic.topic_name for topic in every.topics] == ["orders"]
    (named,) = (await node.answer(offsets("payments", "orders"), access)).groups
    found = {
        topic.topic_name: (topic.partitions[0].start_offset, topic.partitions[0].error_code)
        for topic in named.topics
    }
    assert found == {"orders": (42, ErrorCode.NONE), "payments": (-1, TOPIC_DENIED)}


@pytest.mark.parametrize(
    ("ask", "of_group"), [(altered, READ_GROUP), (deleted, DELETE_GROUP)], ids=["alter", "delete"]
)
async def test_topics_that_the_client_may_not_read_keep_their_offsets(
    node: Asked, ask: Any, of_group: Permission
) -> None:
    await node.answer(altered("orders", "payments"))
    await node.until(lambda: len(node.initialized()) == 2)
    before = dict(node.persister.offsets)
    response = await node.answer(ask("payments", "orders"), allowing(of_group, READ_ORDERS))
    codes = {
        topic.topic_name: getattr(topic, "partitions", [topic])[0].error_code
        for topic in response.responses
    }
    assert codes == {"payments": TOPIC_DENIED, "orders": ErrorCode.NONE}
    assert [topic.topic_name for topic in response.responses] == ["payments", "orders"]
    changed = before.items() - node.persister.offsets.items()
    assert bool(changed) == (ask is deleted)


async def test_the_states_that_a_member_needs_are_there_though_its_client_is_gone(
    node: Asked,
) -> None:
    node.answer_nobody(heartbeat())
    await node.until(lambda: set(node.initialized()) == {ORDERS})


async def test_offsets_are_altered_though_the_client_is_gone(node: Asked) -> None:
    await node.join_and_share()
    held: Promise[None] = Promise(node.runtime)
    node.persister.held = held
    node.answer_nobody(altered("orders"))
    held.settle(None)
    await node.until(lambda: node.persister.offsets["g", ORDERS, 0] == ALTERED_TO)


async def test_offsets_are_deleted_though_the_client_is_gone(node: Asked) -> None:
    await node.join_and_share()
    held: Promise[None] = Promise(node.runtime)
    node.persister.held = held
    node.answer_nobody(deleted("orders"))
    held.settle(None)
    await node.until(lambda: {topic_id for _, topic_id, _ in node.persister.offsets} == {PAYMENTS})


async def test_a_group_is_deleted_though_the_client_is_gone(node: Asked) -> None:
    await node.join_and_share()
    node.answer_nobody(DeleteGroupsRequest(["g"]))
    await node.until(lambda: not node.persister.offsets)
    context = node.service.operations.context_for("g")
    await node.until(
        lambda: context.read(lambda shard: shard.state.share_state_partitions.get("g")) is None
    )
