"""Heartbeats of consumer groups that are refused before their group is looked for."""

import pytest

from kvorum.groups.consumer_group.heartbeat_checks import check_heartbeat
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

ASSIGNORS = ("range", "uniform")

OWNED = [ConsumerGroupHeartbeatRequest.TopicPartitions(partitions=[1])]


def heartbeat(**changes: object) -> ConsumerGroupHeartbeatRequest:
    """Return a join that is accepted, with changes."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def refusal(request: ConsumerGroupHeartbeatRequest, version: int = 1) -> RequestError:
    with pytest.raises(RequestError) as caught:
        check_heartbeat(request, version, ASSIGNORS)
    return caught.value


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"subscribed_topic_names": []},
        {"subscribed_topic_names": None, "subscribed_topic_regex": ""},
        {"member_epoch": 1, "topic_partitions": None, "rebalance_timeout_ms": -1},
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "i"},
        {"server_assignor": "range"},
    ],
)
def test_a_request_that_a_group_may_take_is_accepted(changes: dict[str, object]) -> None:
    check_heartbeat(heartbeat(**changes), 1, ASSIGNORS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": "\t"}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"topic_partitions": OWNED}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            ),
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_no_group_could_take_is_invalid(
    changes: dict[str, object], message: str
) -> None:
    error = refusal(heartbeat(**changes))
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, message)


def test_an_assignor_that_is_not_configured_is_refused_of_a_leaving_member_too() -> None:
    error = refusal(heartbeat(member_epoch=-1, server_assignor="sticky"))
    assert (error.code, error.message) == (
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
    )


@pytest.mark.parametrize("epoch", [0, -2])
def test_a_member_of_the_first_version_may_come_without_an_id(epoch: int) -> None:
    request = heartbeat(member_id="", member_epoch=epoch, instance_id="i")
    check_heartbeat(request, 0, ASSIGNORS)
    assert refusal(request).message == "MemberId can't be empty."


@pytest.mark.parametrize("epoch", [1, -1])
def test_a_member_of_the_first_version_has_an_id_after_its_join(epoch: int) -> None:
    request = heartbeat(member_id="", member_epoch=epoch)
    assert refusal(request, 0).message == "MemberId can't be empty."
