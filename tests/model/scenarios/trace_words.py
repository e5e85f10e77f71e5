"""The messages between replicas, in the words of the traces."""

from kvorum.raft import OffsetAndEpoch, ReplicaKey
from kvorum.raft import messages as msg


def describe(body: msg.Request | msg.Response) -> str:
    """Return a message in a few words."""
    return _request(body) if isinstance(body, msg.Request) else _response(body)


def _request(body: msg.Request) -> str:
    match body:
        case msg.VoteRequest():
            kind = "pre-vote" if body.is_pre_vote else "vote"
            return f"asks for a {kind} in {body.epoch}, log {_pair(body.log_end)}"
        case msg.BeginQuorumEpochRequest():
            return f"says it leads {body.epoch}"
        case msg.EndQuorumEpochRequest():
            preferred = ",".join(str(key.id) for key in body.preferred)
            return f"resigns from {body.epoch} in favour of [{preferred}]"
        case msg.FetchRequest():
            return f"fetches from {_pair(body.position)} in {body.epoch}"
        case msg.FetchSnapshotRequest():
            return f"fetches byte {body.position} of snapshot {body.snapshot_id.offset}"
        case msg.DescribeQuorumRequest():
            return "asks about the quorum"
        case _:
            return _voter_request(body)


def _voter_request(
    body: msg.AddRaftVoterRequest
    | msg.RemoveRaftVoterRequest
    | msg.UpdateRaftVoterRequest
    | msg.ApiVersionsRequest,
) -> str:
    match body:
        case msg.AddRaftVoterRequest():
            return f"asks to be a voter, as {_name(body.voter)}"
        case msg.RemoveRaftVoterRequest():
            return f"asks to remove the voter {_name(body.voter)}"
        case msg.UpdateRaftVoterRequest():
            versions = f"{body.kraft_version_min} to {body.kraft_version_max}"
            places = ", ".join(one.host for one in body.endpoints)
            return f"says that it is at {places} and knows kraft.version {versions}"
        case msg.ApiVersionsRequest():
            return "asks which kraft.version is known"


def _name(key: ReplicaKey | None) -> str:
    return "nobody" if key is None else name_of(key)


def _response(body: msg.Response) -> str:
    if isinstance(body, msg.AddRaftVoterResponse | msg.RemoveRaftVoterResponse):
        return f"answers {body.error.name}: {body.message or repr(body.message)}"
    if isinstance(body, msg.ApiVersionsResponse):
        return f"knows kraft.version {body.kraft_versions}"
    if isinstance(body, msg.FetchResponse):
        return f"answers the fetch ({_fetch_content(body)}{_base(body)})"
    if body.error is not msg.Error.NONE:
        return f"answers {_base(body)}"
    match body:
        case msg.VoteResponse():
            return f"{'grants' if body.is_granted else 'refuses'} ({_base(body)})"
        case msg.FetchSnapshotResponse():
            return f"answers with {body.part_size} of {body.size} bytes ({_base(body)})"
        case msg.DescribeQuorumResponse():
            return describe_quorum(body)
        case _:
            return f"acknowledges ({_base(body)})"


def _pair(position: OffsetAndEpoch) -> tuple[int, int]:
    return position.offset, position.epoch


def _fetch_content(body: msg.FetchResponse) -> str:
    if body.diverging is not None:
        return f"diverging at {_pair(body.diverging)}, "
    if body.snapshot_id is not None:
        return f"snapshot {_pair(body.snapshot_id)}, "
    return f"{len(body.batches)} records, committed {body.high_watermark}, "


def _base(body: msg.LeaderAwareResponse) -> str:
    error = "" if body.error is msg.Error.NONE else f"{body.error.name}, "
    leader = "nobody" if body.leader.leader_id is None else body.leader.leader_id
    return f"{error}{leader} in {body.leader.epoch}"


def describe_quorum(body: msg.DescribeQuorumResponse) -> str:
    """Return the leader's view of the quorum in a line."""
    voters = ", ".join(_progress(one) for one in body.voters)
    observers = ", ".join(_progress(one) for one in body.observers)
    return (
        f"committed {body.high_watermark}, voters {voters or 'none'}, "
        f"observers {observers or 'none'} ({_base(body)})"
    )


def _progress(progress: msg.ReplicaProgress) -> str:
    return f"{name_of(progress.key)} at {progress.log_end_offset}"


def name_of(key: ReplicaKey) -> str:
    """Return a replica as the scenario files write it: with the directory where it is unusual."""
    directory = key.directory_id
    if directory is None:
        return f"{key.id}/-"
    return f"{key.id}" if directory[0] == key.id else f"{key.id}/{directory[0]}"
