"""Kafka's checks of a ShareGroupHeartbeat that need no group, in Kafka's order."""

from kvorum.groups.modern_group.heartbeat_fields import demand_text
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH
from kvorum.metadata.api import invalid_request
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Raise RequestError INVALID_REQUEST, with Kafka's text, if no group could take a request."""
    demand_text(request.member_id, "MemberId")
    demand_text(request.group_id, "GroupId")
    demand_text(request.rack_id, "RackId")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            raise invalid_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
