"""What the answers about groups have in common."""

from __future__ import annotations

from kvorum.wire.messages.heartbeat import HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupResponse
from kvorum.wire.messages.offset_commit import OffsetCommitResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from kvorum.wire.primitives import Message


def code_of(answer: Message) -> int:
    """Return the error code of an answer about one group, and one partition at most."""
    match answer:
        case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse() | LeaveGroupResponse():
            return answer.error_code
        case OffsetCommitResponse() | TxnOffsetCommitResponse():
            return answer.topics[0].partitions[0].error_code
        case _:
            raise TypeError(f"{type(answer).__name__} is no answer about a group")
