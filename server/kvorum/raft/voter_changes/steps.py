"""The steps that changes of the voters share: their checks, a probe, their records, their end.

There is one change at a time, and each begins from a committed set: then every majority of the old
set shares a voter with every majority of the new one. A leader must have committed a record of its
own epoch first, so that no change of an earlier leader can come back.

A node is probed before it is recorded as a voter: which kraft.versions can it work at?
The response also shows that the node can be reached at the endpoint that is to be recorded. The
probe is an ApiVersions request; AddRaftVoter and UpdateRaftVoter send it before they append.
An update that is still probed gives way to an addition or a removal.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.raft.destination import Destination
from kvorum.raft.effects import AppendVoters, SendResponse
from kvorum.raft.endpoints import Endpoint, Endpoints
from kvorum.raft.errors import IllegalMoveError
from kvorum.raft.fetch_requests import answer_parked
from kvorum.raft.messages import (
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Error,
    RemoveRaftVoterResponse,
    RequestFailed,
    UpdateRaftVoterResponse,
)
from kvorum.raft.replica import PendingUpdate, RemoveVoterHandlerState, Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.request_manager import NEVER
from kvorum.raft.roles import Leader
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_hash import uuid_hash
from kvorum.wire.uuid_text import uuid_to_text

_TABLE_SIZE_MIN: Final = 16
_HASH_MASK: Final = 0xFFFFFFFF
RECONFIGURABLE_KRAFT_VERSION = 1
"""The lowest kraft.version at which the voters are in the log and can change."""

UNEXPLAINED = ""
"""The message of an error that Kafka sends without text: the field's default, an empty string."""


def poll_change(replica: Replica, now: float) -> None:
    """End the change under way if it is committed, out of time, or the leadership is lost."""
    change = replica.change
    if change is None:
        return
    offset = None if isinstance(change, PendingUpdate) else change.record_offset
    known = replica.high_watermark
    if not isinstance(replica.role, Leader):
        end_change(replica, Error.NOT_LEADER_OR_FOLLOWER)
    elif offset is not None and known is not None and offset < known:
        end_change(replica, Error.NONE)
    elif change.deadline <= now:
        end_change(replica, Error.REQUEST_TIMED_OUT)


def change_deadline(replica: Replica) -> float:
    """Return when the change under way is out of time."""
    return NEVER if replica.change is None else replica.change.deadline


def end_change(replica: Replica, error: Error, message: str | None = None) -> None:
    """Send the response of the change under way, and allow the next change.

    The record of a change that is out of time stays in the log, and may be committed later.
    """
    answer_change(replica, error, message)
    replica.change = None


def answer_change(replica: Replica, error: Error, message: str | None = None) -> None:
    """Send the outcome of the change under way to its client, unless that is done already."""
    change = replica.change
    text = _default_message(error) if message is None else message
    if isinstance(change, RemoveVoterHandlerState):
        replica.outbox.add(SendResponse(change.token, RemoveRaftVoterResponse(error, text)))
    elif isinstance(change, PendingUpdate):
        answer = UpdateRaftVoterResponse(error, replica.known_leader())
        replica.outbox.add(SendResponse(change.token, answer))
    elif change is not None and not change.is_answered:
        change.is_answered = True
        replica.outbox.add(SendResponse(change.token, AddRaftVoterResponse(error, text)))


def _default_message(error: Error) -> str | None:
    return None if error is Error.NONE else ErrorCode(error).default_message


def key_text(key: ReplicaKey) -> str:
    """Return the text of a replica's key."""
    known = key.directory_id
    directory = "<undefined>" if known is None else uuid_to_text(known)
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def keys_text(keys: Iterable[ReplicaKey]) -> str:
    """Return the text of several keys, in the order in which Java iterates a set of them.

    Where two keys have the same place in Java's table, the given order decides.
    """
    known = list(keys)
    table_size = _TABLE_SIZE_MIN
    while len(known) > table_size * 3 // 4:
        table_size *= 2
    ordered = sorted(known, key=lambda key: _java_hash(key) % table_size)
    return f"[{', '.join(map(key_text, ordered))}]"


def _java_hash(key: ReplicaKey) -> int:
    """Return the hash that decides a key's place in Java's table."""
    directory_hash = 0
    if key.directory_id is not None:
        directory_hash = uuid_hash(key.directory_id)
    value = (31 * (31 + key.id) + directory_hash) & _HASH_MASK
    return value ^ (value >> 16)


def listener_text(name: str) -> str:
    """Return the text of a listener's name."""
    return f"ListenerName({name})"


def endpoints_text(endpoints: Endpoints) -> str:
    """Return the text of a node's endpoints."""

    def one(endpoint: Endpoint) -> str:
        address = f"{endpoint.host}/<unresolved>:{endpoint.port}"
        return f"{listener_text(endpoint.name)}={address}"

    return f"Endpoints(endpoints={{{', '.join(map(one, endpoints))}}})"


def offset_text(offset: int | None) -> str:
    """Return the text of an offset that may be absent."""
    return "Optional.empty" if offset is None else f"Optional[{offset}]"


def end_probe_of_update(replica: Replica) -> None:
    """End a voter's update that is not recorded yet: an operator's change goes before it.

    The voter reports again later. A voter whose address cannot be reached would otherwise hold up
    its own removal.
    """
    if isinstance(replica.change, PendingUpdate):
        end_change(replica, Error.REQUEST_TIMED_OUT)


class Refusal(NamedTuple):
    """Why a change is not made; `message` is Kafka's text."""

    error: Error
    message: str = UNEXPLAINED


def refuse_while_changing(replica: Replica, now: float) -> Refusal | None:
    """Return why no change can begin: another is under way, or nothing is committed yet."""
    poll_change(replica, now)
    if replica.change is not None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to handle previous voter change request",
        )
    if replica.high_watermark is None:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for leader to establish HWM and fence previous voter "
            "changes",
        )
    return None


def refuse_unless_settled(replica: Replica, what: str) -> Refusal | None:
    """Return why the voters cannot change: they are not in the log, or not committed.

    `what` is the kind of change, "adding" or "removing".
    """
    history = replica.history
    version = history.kraft_version
    if version < RECONFIGURABLE_KRAFT_VERSION:
        return Refusal(
            Error.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {what} voter because the kraft.version feature is {version}",
        )
    if not replica.are_voters_committed:
        return Refusal(
            Error.REQUEST_TIMED_OUT,
            "Request timed out waiting for voters to commit the latest voter change at "
            f"{offset_text(history.voters_offset)} with HWM {replica.high_watermark}",
        )
    return None


def send_probe(replica: Replica, now: float, *, key: ReplicaKey, endpoint: Endpoint) -> bool:
    """Ask a node for its kraft.versions; return False where a request to it is under way."""
    if not replica.peers.is_ready(key.id):
        return False
    replica.send(now, Destination(key.id, endpoint.host, endpoint.port), ApiVersionsRequest())
    return True


def probe_error(response: ApiVersionsResponse | RequestFailed) -> str | None:
    """Return Kafka's name of a probe's error; None where the probe succeeded."""
    if isinstance(response, ApiVersionsResponse):
        return response.error_name
    return "UNSUPPORTED_VERSION" if response.lacks_version else "BROKER_NOT_AVAILABLE"


def probed_versions(response: ApiVersionsResponse | RequestFailed) -> tuple[int, int] | None:
    """Return the kraft.versions in a node's response; None where it contains none."""
    return response.kraft_versions if isinstance(response, ApiVersionsResponse) else None


def append_voters(replica: Replica, leader: Leader, now: float, voters: VoterSet) -> int:
    """Append a record with the new voters, which count from now on; return its offset.

    Raises IllegalMoveError where a majority of the old voters need not overlap one of the new.
    """
    old = replica.voters
    if not old.overlaps_safely(voters):
        raise IllegalMoveError(f"the voters {old.ids} cannot become {voters.ids} in one step")
    offset = replica.log.append(epoch=leader.epoch, count=1)
    _begin_with(replica, leader, now, offset=offset, voters=voters)
    replica.outbox.add(AppendVoters(offset, leader.epoch, voters))
    answer_parked(replica, replica.parked.take_reached_by(replica.log.end_offset))
    return offset


def append_kraft_version(
    replica: Replica, leader: Leader, now: float, *, kraft_version: int, voters: VoterSet
) -> None:
    """Append one batch with a kraft.version and its first voter set."""
    base_offset = replica.log.append(epoch=leader.epoch, count=2)
    replica.history.add_kraft_version(base_offset, kraft_version)
    _begin_with(replica, leader, now, offset=base_offset + 1, voters=voters)
    replica.outbox.add(AppendVoters(base_offset, leader.epoch, voters, kraft_version))
    answer_parked(replica, replica.parked.take_reached_by(replica.log.end_offset))


def _begin_with(
    replica: Replica, leader: Leader, now: float, *, offset: int, voters: VoterSet
) -> None:
    old = replica.voters
    replica.history.add_voters(offset, voters)
    leader.voters_changed(old, voters)
    if not old.others(leader.own_key):
        # Until now this leader was the only voter and had no deadline to keep.
        leader.check_quorum_deadline = now + replica.config.check_quorum_ms
