"""Requests about consumer groups that their coordinator refuses without a look at the group."""

from dataclasses import replace

import pytest
from tests.unit.node.coordinated_groups import CONTEXT, SETTINGS, Coordinated, code_of

from kvorum.groups.settings import ConsumerGroupSettings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def leaving(group_id: str, assignor: str | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id, "m", -1, server_assignor=assignor)


@pytest.fixture
async def node() -> Coordinated:
    """A coordinator of no partition, with one assignor."""
    consumer = ConsumerGroupSettings(assignors=("range",))
    coordinator = replace(SETTINGS.coordinator, consumer=consumer)
    node = Coordinated(replace(SETTINGS, coordinator=coordinator))
    node.lose(leader_epoch=0)
    return node


async def heartbeat(node: Coordinated, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
    return await code_of(node.asked(node.service.consumer_group_heartbeat, CONTEXT, request))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (leaving("g"), ErrorCode.NOT_COORDINATOR),
        (leaving("g", "range"), ErrorCode.NOT_COORDINATOR),
        (leaving(""), ErrorCode.INVALID_REQUEST),
        (leaving("g", "uniform"), ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
async def test_a_heartbeat_is_checked_before_its_coordinator_is_looked_for(
    node: Coordinated, request_: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> None:
    assert await heartbeat(node, request_) is code


@pytest.mark.parametrize(
    ("group_id", "code"),
    [("g", ErrorCode.NOT_COORDINATOR), ("", ErrorCode.INVALID_GROUP_ID)],
)
async def test_a_group_that_is_not_here_is_described_by_an_error(
    node: Coordinated, group_id: str, code: ErrorCode
) -> None:
    described = node.service.describe_consumer_group(group_id)
    found = described.group_id, described.error_code, described.error_message
    assert found == (group_id, code, None)


async def test_a_coordinator_that_has_ended_is_not_available_whatever_is_asked(
    node: Coordinated,
) -> None:
    node.service.close()
    assert await heartbeat(node, leaving("")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    described = node.service.describe_consumer_group("")
    assert described.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
