"""Requests about consumer groups: the cluster's feature, permissions, and the form of refusals."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from immutables import Map
from tests.unit.node.permitted_clients import allowing, incoming

from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import ConsumerGroupSettings
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import GROUP_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access
from kvorum.node.coroutines import Task
from kvorum.node.handlers import consumer_group_describe, consumer_group_heartbeat
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.primitives import Message

VERSION: Final = 1
FULL: Final = "The group is full."
UNKNOWN_OPERATIONS: Final = -(2**31)


def assignment(*topics: str) -> ConsumerGroupDescribeResponse.Assignment:
    return ConsumerGroupDescribeResponse.Assignment(
        [ConsumerGroupDescribeResponse.TopicPartitions(topic_name=topic) for topic in topics]
    )


class Groups:
    """A coordinator of groups; `error` is that of its heartbeats.

    Each of its groups has a member with a topic of the group's name, and with one that it is to
    have next.
    """

    error: RequestError | None = None

    def __init__(self) -> None:
        self.heartbeats: list[tuple[int, str]] = []

    def consumer_group_heartbeat(
        self,
        context: RequestContext,
        request: ConsumerGroupHeartbeatRequest,
        then: Callable[[ConsumerGroupHeartbeatResponse | RequestError], None],
    ) -> None:
        self.heartbeats.append((context.version, request.group_id))
        then(ConsumerGroupHeartbeatResponse(member_epoch=1) if self.error is None else self.error)

    def describe_consumer_group(
        self, group_id: str
    ) -> ConsumerGroupDescribeResponse.DescribedGroup:
        if group_id == "missing":
            return ConsumerGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND
            )
        member = ConsumerGroupDescribeResponse.Member(
            assignment=assignment(group_id),
            target_assignment=assignment(group_id, f"next-{group_id}"),
            subscribed_topic_names=["unassigned"],
        )
        return ConsumerGroupDescribeResponse.DescribedGroup(group_id=group_id, members=[member])


def broker_with(groups: Groups, *, level: int = 1, is_enabled: bool = True) -> BrokerServices:
    image = MetadataImage(features=FeaturesImage(levels=Map({GROUP_VERSION_FEATURE: level})))
    consumer = ConsumerGroupSettings(is_enabled=is_enabled)
    coordinator = SimpleNamespace(consumer=consumer)
    broker = SimpleNamespace(
        groups=groups,
        loader=SimpleNamespace(published=image),
        config=SimpleNamespace(groups=SimpleNamespace(coordinator=coordinator)),
        runtime=None,
    )
    return cast("BrokerServices", broker)


def answer(
    api: BrokerApi[Any], body: Message, broker: BrokerServices, access: Access = UNRESTRICTED
) -> Any:
    """Return the response, or the one that refuses the request."""
    request = incoming(body, VERSION, access)
    results: list[Any] = []
    Task(api.answer(request, broker), results.append)
    (result,) = results
    return api.refuse(body, result, VERSION) if isinstance(result, RequestError) else result


def heartbeat(
    groups: Groups, topics: list[str] | None = None, access: Access = UNRESTRICTED
) -> tuple[int, str | None]:
    body = ConsumerGroupHeartbeatRequest("g", subscribed_topic_names=topics)
    response = answer(consumer_group_heartbeat.API, body, broker_with(groups), access)
    return response.error_code, response.error_message


def described(
    group_ids: list[str], access: Access = UNRESTRICTED, *, with_operations: bool = False
) -> list[ConsumerGroupDescribeResponse.DescribedGroup]:
    body = ConsumerGroupDescribeRequest(group_ids, with_operations)
    response = answer(consumer_group_describe.API, body, broker_with(Groups()), access)
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = response.groups
    return groups


@pytest.mark.parametrize(("level", "is_enabled"), [(0, True), (1, False)])
def test_requests_are_unsupported_without_feature_or_protocol(level: int, is_enabled: bool) -> None:
    groups = Groups()
    broker = broker_with(groups, level=level, is_enabled=is_enabled)
    nobody = allowing()
    beat = answer(consumer_group_heartbeat.API, ConsumerGroupHeartbeatRequest("g"), broker, nobody)
    assert (beat.error_code, beat.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
    body = ConsumerGroupDescribeRequest(["a", "b"])
    found = answer(consumer_group_describe.API, body, broker, nobody).groups
    assert [(group.group_id, group.error_code) for group in found] == [
        ("a", ErrorCode.UNSUPPORTED_VERSION),
        ("b", ErrorCode.UNSUPPORTED_VERSION),
    ]
    assert groups.heartbeats == []


def test_a_group_decides_about_a_heartbeat() -> None:
    groups = Groups()
    assert heartbeat(groups) == (ErrorCode.NONE, None)
    assert groups.heartbeats == [(VERSION, "g")]


READ_GROUP = (AclOperation.READ, AclResourceType.GROUP, "g")
DESCRIBE_GROUP = (AclOperation.DESCRIBE, AclResourceType.GROUP, "g")


def describing(topic: str) -> tuple[AclOperation, AclResourceType, str]:
    return AclOperation.DESCRIBE, AclResourceType.TOPIC, topic


@pytest.mark.parametrize(
    ("allowed", "topics", "code"),
    [
        ([DESCRIBE_GROUP], None, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ([READ_GROUP], None, ErrorCode.NONE),
        ([READ_GROUP], [], ErrorCode.NONE),
        ([READ_GROUP, describing("a")], ["a", "b"], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([READ_GROUP, describing("a")], ["a", "a"], ErrorCode.NONE),
    ],
)
def test_a_heartbeat_needs_the_group_and_every_topic_that_it_names(
    allowed: list[tuple[AclOperation, AclResourceType, str]],
    topics: list[str] | None,
    code: ErrorCode,
) -> None:
    groups = Groups()
    assert heartbeat(groups, topics, allowing(*allowed)) == (code, None)
    assert bool(groups.heartbeats) == (code is ErrorCode.NONE)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RequestError(ErrorCode.GROUP_MAX_SIZE_REACHED, FULL), FULL),
        (RequestError.with_default_message(ErrorCode.NOT_COORDINATOR), None),
        (RequestError(ErrorCode.NOT_COORDINATOR), None),
    ],
)
def test_a_refused_heartbeat_has_a_text_that_says_more_than_the_code(
    error: RequestError, message: str | None
) -> None:
    groups = Groups()
    groups.error = error
    assert heartbeat(groups) == (error.code, message)


def test_groups_that_the_client_may_not_know_of_come_first() -> None:
    found = described(["missing", "g"], allowing((DESCRIBE_GROUP[0], DESCRIBE_GROUP[1], "missing")))
    assert [(group.group_id, group.error_code, group.error_message) for group in found] == [
        ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND, None),
    ]


def test_a_group_with_an_assigned_topic_that_the_client_may_not_describe_is_hidden() -> None:
    (hidden,) = described(["g"], allowing(DESCRIBE_GROUP, describing("g")))
    assert (hidden.error_code, hidden.error_message, hidden.members) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "The group has described topic(s) that the client is not authorized to describe.",
        [],
    )
    (shown,) = described(["g"], allowing(DESCRIBE_GROUP, describing("g"), describing("next-g")))
    assert (shown.error_code, len(shown.members)) == (ErrorCode.NONE, 1)


def test_operations_are_those_of_the_client_on_groups_that_exist() -> None:
    found = described(["g", "missing"], with_operations=True)
    operations = [group.authorized_operations for group in found]
    assert operations == [UNRESTRICTED.operations_on_group("g"), UNKNOWN_OPERATIONS]
    assert [group.authorized_operations for group in described(["g"])] == [UNKNOWN_OPERATIONS]
