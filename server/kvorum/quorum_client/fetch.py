"""Fetch: committed batches of a quorum's leader, from a place in its log on."""

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION
from kvorum.quorum_client.client import LeaderHint, QuorumClient, UnusableAnswerError, error_text
from kvorum.quorum_client.connection import Connection
from kvorum.quorum_client.errors import QuorumError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, read_batches
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

FETCH_VERSION_MIN: Final = 13
"""The first version that names topics by id, which leaders of a quorum demand."""
FETCH_BYTES: Final = 4 * 1024 * 1024
"""The bytes of records that one fetch asks for."""
PEEK_BYTES: Final = 1
"""So few bytes that an answer has a single batch."""
LONG_POLL_MS: Final = 500
"""The time for which a leader may wait for records, as for a follower."""
Result = TypeVar("Result")


class Fetched(NamedTuple):
    """A leader's answer: batches that are committed, from the one with the asked offset on.

    `snapshot` is the id of a snapshot to read instead, where the log does not have the asked
    offset any more; there are no batches then.
    """

    high_watermark: int
    log_start_offset: int
    snapshot: OffsetAndEpoch | None
    batches: tuple[RecordBatch, ...]


def fetch(
    client: QuorumClient,
    place: OffsetAndEpoch,
    *,
    size_bytes: int = FETCH_BYTES,
    wait_ms: int = 0,
    reach: int = 0,
) -> Fetched:
    """Return committed batches from `place` on, as many as fit into about `size_bytes`.

    `place.epoch` is the epoch of the record before, or a later one of the same log. An answer
    with a high watermark below `reach` is of a leader that does not know yet what is committed,
    and not used. Raises `QuorumError`.

    A leader hands out records that are not committed yet too. Here only batches that lie below the
    high watermark of the same answer are returned: these never change, also under later leaders.
    """
    ask = partial(_ask, client, place=place, size_bytes=size_bytes, wait_ms=wait_ms, reach=reach)
    return client.ask_leader(ask, lowest_epoch=place.epoch)


def latest_snapshot(
    client: QuorumClient, connection: Connection, leader_epoch: int
) -> OffsetAndEpoch | None:
    """Return the snapshot that the leader hands to a follower that begins, None for none.

    Raises `UnusableAnswerError` and `ConnectionFailedError`; what the answer says of the leader
    is noted.
    """
    beginning = OffsetAndEpoch(0, 0)
    fetched = _ask(client, connection, leader_epoch, place=beginning, size_bytes=PEEK_BYTES)
    return fetched.snapshot


def check_error(client: QuorumClient, request: str, code: int) -> None:
    """Raise for an answer with an error: `QuorumError` for one that no other leader mends."""
    if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
        raise QuorumError(
            f"the controllers are of another cluster than {client.cluster_id}, which the checkpoint"
            " or option 'cluster.id' names: check option 'controllers'"
        )
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise QuorumError(
            f"{request}: CLUSTER_AUTHORIZATION_FAILED: the controllers' authorizer must allow "
            "ClusterAction on the cluster to this client"
        )
    if code != ErrorCode.NONE:
        raise UnusableAnswerError(error_text(request, code))


def _ask(
    client: QuorumClient,
    connection: Connection,
    leader_epoch: int,
    *,
    place: OffsetAndEpoch,
    size_bytes: int,
    wait_ms: int = 0,
    reach: int = 0,
) -> Fetched:
    partition = FetchRequest.FetchPartition(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=leader_epoch,
        fetch_offset=place.offset,
        last_fetched_epoch=place.epoch,
        partition_max_bytes=size_bytes,
        # A leader whose high watermark is higher answers at once.
        high_watermark=place.offset,
    )
    topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    # The replica id stays -1: the leader then does not take this client for one of its replicas.
    request = FetchRequest(
        cluster_id=client.cluster_id, max_wait_ms=wait_ms, max_bytes=size_bytes, topics=[topic]
    )
    answer = connection.ask(request, FetchResponse, lowest_version=FETCH_VERSION_MIN)
    endpoints = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
    check_error(client, "Fetch", answer.error_code)
    data = only([partition for topic in answer.responses for partition in topic.partitions])
    leader = data.current_leader
    client.note(LeaderHint(leader.leader_id, leader.leader_epoch, endpoints.get(leader.leader_id)))
    check_error(client, "Fetch", data.error_code)
    return _fetched(data, place, reach)


def only(found: list[Result]) -> Result:
    """Return the one partition of an answer; raises `UnusableAnswerError` unless there is one."""
    if len(found) != 1:
        raise UnusableAnswerError(f"an answer with {len(found)} partitions")
    return found[0]


def _fetched(data: FetchResponse.PartitionData, place: OffsetAndEpoch, reach: int) -> Fetched:
    if data.maybe_diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
        # A leader that was replaced without knowing it may answer so too: another one is asked.
        raise UnusableAnswerError(
            f"the leader's log has no record {place.offset - 1} of epoch {place.epoch}: its epoch "
            f"{data.diverging_epoch.epoch} ends at {data.diverging_epoch.end_offset}. Is the "
            "checkpoint that of another log?"
        )
    if data.high_watermark < max(reach, 0):
        raise UnusableAnswerError(f"the high watermark is {data.high_watermark} yet")
    snapshot = None
    if data.maybe_snapshot_id is not None and data.snapshot_id.end_offset >= 0:
        snapshot = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    batches: tuple[RecordBatch, ...] = ()
    if snapshot is None:
        batches = tuple(_committed(data.records or b"", place.offset, data.high_watermark))
        if not batches and place.offset < data.high_watermark:
            raise UnusableAnswerError(f"no whole batch with offset {place.offset}")
    return Fetched(data.high_watermark, data.log_start_offset, snapshot, batches)


def _committed(
    records: bytes | memoryview, offset: int, high_watermark: int
) -> Iterable[RecordBatch]:
    """Yield batches below the high watermark, each verified, and each where the last one ended."""
    expected: int | None = None
    try:
        for batch in read_batches(records, is_cut_allowed=True):
            if batch.next_offset <= offset:
                continue
            if batch.next_offset > high_watermark:
                return
            batch.verify()
            if batch.base_offset > offset if expected is None else batch.base_offset != expected:
                problem = f"offset {batch.base_offset} where {expected or offset} belongs"
                raise UnusableAnswerError(problem)
            expected = batch.next_offset
            yield batch
    except WireError as error:
        raise UnusableAnswerError(str(error)) from None
