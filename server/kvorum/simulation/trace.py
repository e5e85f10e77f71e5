"""The trace of a world: lines for a human reader, their short texts, and one hash of everything."""

from collections.abc import Callable
from hashlib import blake2b

from kvorum.raft import messages as core
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Role
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class Trace:
    """The lines of a run, in order, with the world's time in seconds; kept only on request.

    The digest covers everything passed to `say` and `mix`, kept or not: equal runs have equal ones.
    """

    def __init__(self, now_ms: Callable[[], float], *, is_kept: bool) -> None:
        self.lines: list[str] = []
        self.is_kept = is_kept
        self.said_count = 0
        self._now_ms = now_ms
        self._hash = blake2b(digest_size=16)

    def say(self, text: str) -> None:
        """Add a line that is part of the digest."""
        self.said_count += 1
        self._hash.update(f"{self._now_ms()!r} {text}\n".encode())
        self.add(text)

    def mix(self, text: str, data: bytes) -> None:
        """Add bytes to the digest that no line shows, such as a frame."""
        self.said_count += 1
        self._hash.update(f"{self._now_ms()!r} {text}\n".encode())
        self._hash.update(data)

    def add(self, text: str) -> None:
        """Add a line for readers only."""
        if self.is_kept:
            self.lines.append(f"{self._now_ms() / 1000:10.4f}  {text}")

    @property
    def digest(self) -> str:
        """The hash so far, in hexadecimal."""
        return self._hash.hexdigest()

    def text(self) -> str:
        """Return all lines that were kept."""
        return "".join(f"{line}\n" for line in self.lines)


def request_text(request: core.Request) -> str:
    """Return the text of a request."""
    match request:
        case core.VoteRequest():
            kind = "a pre-vote" if request.is_pre_vote else "a vote"
            return f"for {kind} in {request.epoch} (log {_end(request.log_end)})"
        case core.BeginQuorumEpochRequest():
            return f"to follow {request.leader_id} in {request.epoch}"
        case core.EndQuorumEpochRequest():
            preferred = ", ".join(str(key.id) for key in request.preferred)
            return f"to replace {request.leader_id} in {request.epoch} (rather {preferred})"
        case core.FetchRequest():
            return (
                f"for records from {_end(request.position)} in {request.epoch} "
                f"(knows {request.high_watermark})"
            )
        case core.FetchSnapshotRequest():
            return f"for snapshot {_end(request.snapshot_id)} from byte {request.position}"
        case core.AddRaftVoterRequest():
            return f"to add voter {_id(request.voter)}"
        case core.RemoveRaftVoterRequest():
            return f"to remove voter {_id(request.voter)}"
        case core.UpdateRaftVoterRequest():
            return f"to update voter {_id(request.voter)} in {request.epoch}"
        case core.ApiVersionsRequest():
            return "for its versions"
        case _:
            return "how everyone is doing"


def response_text(response: core.Response | core.RequestFailed) -> str:
    """Return the text of a response or a failure."""
    match response:
        case core.RequestFailed():
            return f"nothing, {response.reason}"
        case core.VoteResponse():
            said = "yes" if response.is_granted else "no"
            return f"{said}, {_leader(response.error, response.leader)}"
        case core.FetchResponse():
            return f"{_fetched(response)}, {_leader(response.error, response.leader)}"
        case core.FetchSnapshotResponse():
            part = f"{response.part_size} bytes at {response.position} of {response.size}"
            return f"{part}, {_leader(response.error, response.leader)}"
        case core.AddRaftVoterResponse() | core.RemoveRaftVoterResponse():
            return f"{response.error.name} {response.message or ''}".rstrip()
        case core.ApiVersionsResponse():
            return f"kraft.version {response.kraft_versions}"
        case _:
            return _leader(response.error, response.leader)


def role_text(role: Role) -> str:
    """Return the text of a replica's role."""
    leader = "" if role.leader_id is None else f", {role.leader_id} leads"
    return f"{role.name.value} in {role.epoch}{leader}"


def _fetched(response: core.FetchResponse) -> str:
    if response.snapshot_id is not None:
        return f"take snapshot {_end(response.snapshot_id)}"
    if response.diverging is not None:
        return f"logs part at {_end(response.diverging)}"
    if not response.batches:
        return f"no records, committed {response.high_watermark}"
    first, last = response.batches[0].base_offset, response.batches[-1].last_offset
    return f"records {first} to {last}, committed {response.high_watermark}"


def _leader(error: core.Error, leader: core.KnownLeader) -> str:
    who = "nobody" if leader.leader_id is None else str(leader.leader_id)
    said = "" if error is core.Error.NONE else f"{error.name}, "
    return f"{said}{who} leads {leader.epoch}"


def _end(position: OffsetAndEpoch) -> str:
    return f"{position.offset}@{position.epoch}"


def _id(key: ReplicaKey | None) -> str:
    return "nobody" if key is None else str(key.id)
