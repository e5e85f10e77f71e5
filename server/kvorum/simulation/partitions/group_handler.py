"""Requests about groups as a simulated broker answers them, by the real coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kvorum.groups.settings import RequestContext
from kvorum.metadata.request_error import RequestError
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.handlers import heartbeat, join_group, leave_group, offset_commit, sync_group
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.simulation.partitions.groups import committed_offset
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.settings import OFFSETS_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.primitives import Message

_APIS: Final[Mapping[type[Message], BrokerApi[Any]]] = {
    api.request: api
    for api in (heartbeat.API, join_group.API, leave_group.API, offset_commit.API, sync_group.API)
}


class GroupHandler:
    """Answers of one process."""

    def __init__(
        self, service: GroupCoordinatorService, replicas: ReplicaManager, around: Surroundings
    ) -> None:
        self._service = service
        self._replicas = replicas
        self._around = around

    def handle(self, request: Message, reply: Reply) -> None:
        """Answer now, or when a commit is committed or the other members have come."""

        def then(result: Message | RequestError) -> None:
            if isinstance(result, RequestError):
                refuse = _APIS[type(request)].refuse
                reply(refuse(request, result, request.MAX_VERSION))
            else:
                self._note(request, result)
                reply(result)

        try:
            match request:
                case OffsetCommitRequest():
                    self._service.commit_offsets(_context(request), request, then)
                case JoinGroupRequest():
                    self._service.join_group(_context(request), request, then)
                case SyncGroupRequest():
                    self._service.sync_group(request, then)
                case HeartbeatRequest():
                    self._service.heartbeat(request, then)
                case LeaveGroupRequest():
                    self._service.leave_group(request, then)
                case _:
                    raise TypeError(f"nobody sends {type(request).__name__} to a broker")
        except RequestError as error:
            then(error)

    def _note(self, request: Message, answer: Message) -> None:
        """Check the assignment that a member gets."""
        if (
            isinstance(request, SyncGroupRequest)
            and isinstance(answer, SyncGroupResponse)
            and answer.error_code == ErrorCode.NONE
            and self._is_present_coordinator()
        ):
            group = self._around.groups[request.group_id]
            # A static member keeps its partitions under another member id (KIP-345).
            owner = request.group_instance_id or request.member_id
            group.on_assigned(request.generation_id, owner, answer.assignment)
            self._around.ledger.counts["assignments"] += 1

    def fetch(self, request: OffsetFetchRequest, reply: Reply) -> None:
        """Answer at once; what the present coordinator answers is checked."""
        (group,) = request.groups
        try:
            found = self._service.fetch_offsets(group)
        except RequestError as error:
            found = OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
        answer = OffsetFetchResponse(groups=[found])
        offset = committed_offset(answer)
        if offset is not None and self._is_present_coordinator():
            told = f"group {group.group_id}: {offset} at broker {self._replicas.broker_id}"
            self._around.groups[group.group_id].on_read(offset, told)
            self._around.ledger.counts["read offsets"] += 1
        reply(answer)

    def _is_present_coordinator(self) -> bool:
        """Return whether no later leader is known to the quorum, and this one knows what it has.

        As in Kafka, a former coordinator answers with what it knew. A new one reads offsets up to
        its high watermark, which may be an older one, but assigns what it has loaded, committed or
        not.
        """
        partition = self._replicas.partition(OFFSETS_ID, 0)
        topic = self._around.quorum.committed_image.topics.by_id[OFFSETS_ID]
        return (
            partition is not None
            and partition.is_leader
            and partition.leader_epoch == topic.partitions[0].leader_epoch
            and partition.is_offset_available
        )


def _context(request: Message) -> RequestContext:
    return RequestContext(request.MAX_VERSION, "client", "/127.0.0.1")
