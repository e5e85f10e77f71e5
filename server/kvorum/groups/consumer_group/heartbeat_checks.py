"""Kafka's checks of a ConsumerGroupHeartbeat that need no group, in Kafka's order."""

from collections.abc import Iterable
from typing import Final

from kvorum.groups.modern_group.heartbeat_fields import demand_text
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.java_hash import hash_table_order
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

LEAVE_FOR_A_WHILE_EPOCH: Final = -2
"""The epoch of a static member that leaves and will return."""
_NO_TIMEOUT: Final = -1
_FIRST_VERSION_WITH_IDS_FROM_CLIENTS: Final = 1


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, assignor_names: Iterable[str]
) -> None:
    """Raise RequestError, with Kafka's text, for a request that no group could take.

    `assignor_names` are the configured assignors; another one is UNSUPPORTED_ASSIGNOR, also of a
    member that leaves. Everything else is INVALID_REQUEST.
    """
    if _must_have_id(request.member_epoch, version):
        demand_text(request.member_id, "MemberId")
    demand_text(request.group_id, "GroupId")
    demand_text(request.instance_id, "InstanceId")
    demand_text(request.rack_id, "RackId")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == LEAVE_FOR_A_WHILE_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_FOR_A_WHILE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    if request.server_assignor is not None:
        _check_assignor(request.server_assignor, assignor_names)


def _must_have_id(epoch: int, version: int) -> bool:
    """Return whether a member names itself: before KIP-1082 the coordinator named it at its join.

    As in Kafka, a static member of version 0 that leaves for a while may come without its id.
    """
    is_named_by_client = version >= _FIRST_VERSION_WITH_IDS_FROM_CLIENTS
    return is_named_by_client or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == _NO_TIMEOUT:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise invalid_request("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid_request(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def _check_assignor(name: str, assignor_names: Iterable[str]) -> None:
    supported = hash_table_order(assignor_names)
    if name not in supported:
        raise RequestError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(supported)}.",
        )
