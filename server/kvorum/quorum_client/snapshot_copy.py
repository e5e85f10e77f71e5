"""A snapshot of the leader's, copied into a local file by FetchSnapshot."""

from pathlib import Path
from typing import Final, NamedTuple

from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.quorum_client.client import LeaderHint, QuorumClient, UnusableAnswerError, error_text
from kvorum.quorum_client.connection import Connection
from kvorum.quorum_client.fetch import check_error, latest_snapshot, only
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CHUNK_BYTES: Final = 4 * 1024 * 1024


class _Chunk(NamedTuple):
    """Bytes of a snapshot of `size` bytes, from byte `position` on, and whose they are."""

    position: int
    data: bytes
    size: int
    leader_epoch: int

    @property
    def end(self) -> int:
        return self.position + len(self.data)


def copy_snapshot(client: QuorumClient, snapshot: OffsetAndEpoch, file: Path) -> bool:
    """Write the leader's snapshot into `file`; return False where the leader has no such snapshot.

    Raises `QuorumError`.
    """
    with file.open("wb") as copy:
        chunk: _Chunk | None = None
        while chunk is None or chunk.end < chunk.size:
            chunk = _fetch_chunk(client, snapshot, chunk)
            if chunk is None:
                return False
            copy.seek(chunk.position)
            copy.truncate()
            copy.write(chunk.data)
        return True


def _fetch_chunk(
    client: QuorumClient, snapshot: OffsetAndEpoch, before: _Chunk | None
) -> _Chunk | None:
    """Return the bytes after those of `before`; None where the leader has no such snapshot.

    Replicas write their snapshots each for itself, so bytes of two of them do not fit together:
    the bytes of a new leader are the first ones again.
    """

    def ask(connection: Connection, leader_epoch: int) -> _Chunk | None:
        position = 0
        if before is not None and before.leader_epoch == leader_epoch:
            position = before.end
        request = _request(client.cluster_id, snapshot, position, leader_epoch)
        answer = connection.ask(request, FetchSnapshotResponse)
        if answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            # Kafka's controllers, those of 4.3.1 too, cannot write a refusal of FetchSnapshot: each
            # becomes this error, without the leader. An answer to Fetch names the leader and the
            # latest snapshot: all but that one may be gone.
            if latest_snapshot(client, connection, leader_epoch) == snapshot:
                raise UnusableAnswerError(error_text("FetchSnapshot", answer.error_code))
            return None
        endpoints = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
        check_error(client, "FetchSnapshot", answer.error_code)
        data = only([partition for topic in answer.topics for partition in topic.partitions])
        leader = data.current_leader
        if data.maybe_current_leader is not None:
            endpoint = endpoints.get(leader.leader_id)
            client.note(LeaderHint(leader.leader_id, leader.leader_epoch, endpoint))
        if data.error_code == ErrorCode.SNAPSHOT_NOT_FOUND:
            return None
        check_error(client, "FetchSnapshot", data.error_code)
        return _chunk(data, snapshot, position, leader_epoch)

    return client.ask_leader(ask, lowest_epoch=snapshot.epoch)


def _request(
    cluster_id: str | None, snapshot: OffsetAndEpoch, position: int, leader_epoch: int
) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=leader_epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(snapshot.offset, snapshot.epoch),
        position=position,
    )
    topic = FetchSnapshotRequest.TopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])
    return FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=CHUNK_BYTES, topics=[topic])


def _chunk(
    data: FetchSnapshotResponse.PartitionSnapshot,
    snapshot: OffsetAndEpoch,
    position: int,
    leader_epoch: int,
) -> _Chunk:
    found = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    if (found, data.position) != (snapshot, position):
        raise UnusableAnswerError(f"byte {data.position} of the snapshot {found}")
    piece = bytes(data.unaligned_records or b"")
    if not piece:
        raise UnusableAnswerError("an answer without bytes of the snapshot")
    return _Chunk(position, piece, data.size, leader_epoch)
