"""OffsetCommit and OffsetFetch by members of consumer groups: their epochs (KIP-848, KIP-1251)."""

from typing import Final

from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

_FIRST_VERSION_WITH_MEMBER_EPOCH: Final = 9
_NO_EPOCH: Final = -1


def check_consumer_commit(
    group: ConsumerGroup, version: int, request: OffsetCommitRequest | TxnOffsetCommitRequest
) -> None:
    """Refuse a commit of one that may not commit for the group at this moment.

    A member may commit at an earlier epoch too: for partitions that it has had since then.
    """
    epoch, member_id = request.generation_id_or_member_epoch, request.member_id
    is_transactional = isinstance(request, TxnOffsetCommitRequest)
    if epoch < 0 and group.is_empty:
        return
    is_anonymous = epoch == _NO_EPOCH and not member_id and request.group_instance_id is None
    if is_transactional and is_anonymous:
        return
    member = group.member(member_id)
    has_no_epochs = version < _FIRST_VERSION_WITH_MEMBER_EPOCH
    if not is_transactional and not member.uses_classic_protocol and has_no_epochs:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the modern group "
            "protocol",
        )
    is_stale = epoch > member.member_epoch or (
        epoch < member.member_epoch and not _has_had(member, request, epoch)
    )
    if is_stale:
        # Transactional producers know of generations alone.
        code = ErrorCode.ILLEGAL_GENERATION if is_transactional else _stale_code(member)
        raise RequestError(code, _stale_text(member, epoch))


def check_consumer_fetch(
    group: ConsumerGroup, request: OffsetFetchRequestGroup, epoch: int | None
) -> None:
    """Refuse an unknown member, and one at another epoch; a client may ask without either."""
    if request.member_id is None and request.member_epoch < 0:
        return
    member = group.members.get(request.member_id or "", epoch)
    if member is None:
        raise RequestError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {request.member_id} is not a member of group {group.group_id}.",
        )
    if request.member_epoch != member.member_epoch:
        raise RequestError(_stale_code(member), _stale_text(member, request.member_epoch))


def _has_had(
    member: ConsumerGroupMember,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    epoch: int,
) -> bool:
    """Return whether the member has had all partitions of the request since an epoch."""
    for topic in request.topics:
        for partition in topic.partitions:
            index = partition.partition_index
            since = member.assigned.get(topic.topic_id, {}).get(index)
            if since is None:
                since = member.pending_revocation.get(topic.topic_id, {}).get(index)
            if since is None or since > epoch:
                return False
    return True


def _stale_code(member: ConsumerGroupMember) -> ErrorCode:
    """Return the code that the client of a member understands."""
    if member.uses_classic_protocol:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def _stale_text(member: ConsumerGroupMember, epoch: int) -> str:
    return (
        f"The received member epoch {epoch} does not match the expected member epoch "
        f"{member.member_epoch}."
    )
