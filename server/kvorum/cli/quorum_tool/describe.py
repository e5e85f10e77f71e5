"""``describe``: the quorum's state as kafka-metadata-quorum prints it.

While the quorum is reassigned (KIP-642), lines and rows about the target voters come after those of
Kafka's tool, and an observer that is to become a voter has a status of its own.
"""

import time
from collections.abc import Iterator, Sequence

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import describe_cluster
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import DESCRIBE_QUORUM, QuorumInfo, ReplicaState
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

_HEADERS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
_TARGET = "Target"
_NO_LEADER_AMONG_VOTERS = "No value present"


async def print_status(client: AdminClient) -> None:
    """Print the leader, the largest lag, the voters and the observers."""
    cluster = await describe_cluster(client)
    info = await client.call(DESCRIBE_QUORUM)
    leader = _leader_of(info)
    last = min(info.voters, key=lambda voter: voter.log_end_offset)
    print(f"ClusterId:              {cluster.cluster_id}")
    print(f"LeaderId:               {info.leader_id}")
    print(f"LeaderEpoch:            {info.leader_epoch}")
    print(f"HighWatermark:          {info.high_watermark}")
    print(f"MaxFollowerLag:         {leader.log_end_offset - last.log_end_offset}")
    print(f"MaxFollowerLagTimeMs:   {_lag_ms(leader, last)}")
    print(f"CurrentVoters:          {_replicas_text(info, info.voters)}")
    print(f"CurrentObservers:       {_replicas_text(info, info.observers)}")
    if info.reassignment is not None:
        print(f"TargetVoters:           {_replicas_text(info, info.reassignment.targets)}")
        if info.reassignment.block_text:
            print(f"ReassignmentWaitsFor:   {info.reassignment.block_text}")


async def print_replication(client: AdminClient, *, is_human_readable: bool) -> None:
    """Print a table: the leader, the other voters, the observers."""
    info = await client.call(DESCRIBE_QUORUM)
    leader = _leader_of(info)
    rows: list[Sequence[str]] = [_HEADERS]
    for status, replica in _with_status(info, leader):
        rows.append(
            [
                str(replica.replica_id),
                uuid_to_text(replica.directory_id),
                str(replica.log_end_offset),
                str(leader.log_end_offset - replica.log_end_offset),
                _time_text(replica.last_fetch_ms, "last fetch", is_human_readable),
                _time_text(replica.last_caught_up_ms, "last caught up", is_human_readable),
                status,
            ]
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("".join(f"{text:<{width}}\t" for text, width in zip(row, widths, strict=True)))


def _leader_of(info: QuorumInfo) -> ReplicaState:
    if info.leader is None:
        raise AdminError(_NO_LEADER_AMONG_VOTERS)
    return info.leader


def _with_status(info: QuorumInfo, leader: ReplicaState) -> Iterator[tuple[str, ReplicaState]]:
    yield "Leader", leader
    for voter in info.voters:
        if voter.replica_id != info.leader_id:
            yield "Follower", voter
    targets = () if info.reassignment is None else info.reassignment.targets
    known = {(target.replica_id, target.directory_id) for target in targets}
    for observer in info.observers:
        is_target = (observer.replica_id, observer.directory_id) in known
        yield _TARGET if is_target else "Observer", observer
    present = {(one.replica_id, one.directory_id) for one in (*info.voters, *info.observers)}
    for target in targets:
        if (target.replica_id, target.directory_id) not in present:
            yield _TARGET, target


def _lag_ms(leader: ReplicaState, last: ReplicaState) -> int:
    """Return for how long the last voter has been behind, -1 where this is not known."""
    if leader is last:
        return 0
    if leader.last_caught_up_ms is None or last.last_caught_up_ms is None:
        return -1
    return leader.last_caught_up_ms - last.last_caught_up_ms


def _replicas_text(info: QuorumInfo, replicas: Sequence[ReplicaState]) -> str:
    return f"[{', '.join(_replica_text(info, replica) for replica in replicas)}]"


def _replica_text(info: QuorumInfo, replica: ReplicaState) -> str:
    parts = [f'"id": {replica.replica_id}']
    if replica.directory_id != ZERO_UUID:
        parts.append(f'"directoryId": "{uuid_to_text(replica.directory_id)}"')
    if endpoints := info.endpoints.get(replica.replica_id):
        listed = ", ".join(f'"{endpoint}"' for endpoint in endpoints)
        parts.append(f'"endpoints": [{listed}]')
    return f"{{{', '.join(parts)}}}"


def _time_text(time_ms: int | None, what: str, is_human_readable: bool) -> str:
    if time_ms is None:
        return "-1"
    if not is_human_readable:
        return str(time_ms)
    now_ms = int(time.time() * 1000)
    if not 0 < time_ms <= now_ms:
        raise AdminError(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {what} timestamp is {time_ms}"
        )
    return f"{now_ms - time_ms} ms ago"
