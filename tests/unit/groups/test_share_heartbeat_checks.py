"""Heartbeats of share groups that are refused before their group is looked for."""

import pytest

from kvorum.groups.share_group.heartbeat_checks import check_share_heartbeat
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def heartbeat(**changes: object) -> ShareGroupHeartbeatRequest:
    """Return a join that is accepted, with changes."""
    request = ShareGroupHeartbeatRequest("g", "m", 0, "r", ["t"])
    for name, value in changes.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rack_id": None},
        {"member_epoch": 1, "subscribed_topic_names": []},
        {"member_epoch": -1},
    ],
)
def test_a_request_that_a_group_may_take_is_accepted(changes: dict[str, object]) -> None:
    check_share_heartbeat(heartbeat(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": " ", "group_id": ""}, "MemberId can't be empty."),
        ({"group_id": "\t", "rack_id": ""}, "GroupId can't be empty."),
        ({"rack_id": "", "member_epoch": -2}, "RackId can't be empty."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_the_first_problem_is_that_of_the_refusal(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_share_heartbeat(heartbeat(**changes))
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)
