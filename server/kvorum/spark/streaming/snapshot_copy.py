"""A snapshot of the leader's, copied into a local file by FetchSnapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.spark.streaming.addresses import Address
from kvorum.spark.streaming.connection import Connection
from kvorum.spark.streaming.leader_log import check_error
from kvorum.spark.streaming.quorum_client import LeaderHint, QuorumClient, UnusableAnswerError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CHUNK_BYTES: Final = 4 * 1024 * 1024
_OTHER_COPY: Final = -2
"""The leader epoch of a chunk that no chunk before it fits."""


class _Chunk(NamedTuple):
    """Bytes of a snapshot of `size` bytes, and who they are from."""

    data: bytes
    size: int
    leader_epoch: int


def copy_snapshot(client: QuorumClient, snapshot: OffsetAndEpoch, file: Path) -> bool:
    """Write the leader's snapshot into `file`; return False where the leader has no such snapshot.

    Replicas write their snapshots each for itself, so bytes of two of them do not fit together:
    where the leader changes, the copy begins again. Raises `QuorumError`.
    """
    with file.open("wb") as copy:
        position, leader_epoch = 0, -1
        while True:
            chunk = _fetch_chunk(client, snapshot, position)
            if chunk is None:
                return False
            if position and chunk.leader_epoch != leader_epoch:
                # That of a new leader; a shorter one may not have the position at all.
                copy.seek(0)
                copy.truncate()
                position = 0
                continue
            leader_epoch = chunk.leader_epoch
            copy.write(chunk.data)
            position += len(chunk.data)
            if position >= chunk.size:
                return True


def _fetch_chunk(client: QuorumClient, snapshot: OffsetAndEpoch, position: int) -> _Chunk | None:
    """Return the bytes from `position` on; None where the leader has no such snapshot."""

    def ask(connection: Connection, leader_epoch: int) -> _Chunk | None:
        request = _request(client.cluster_id, snapshot, position, leader_epoch)
        answer = connection.ask(request, FetchSnapshotResponse)
        endpoints = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
        check_error(client, "FetchSnapshot", answer.error_code)
        partitions = [partition for topic in answer.topics for partition in topic.partitions]
        if len(partitions) != 1:
            raise UnusableAnswerError(f"an answer with {len(partitions)} partitions")
        data = partitions[0]
        leader = data.current_leader
        if data.maybe_current_leader is not None:
            endpoint = endpoints.get(leader.leader_id)
            client.note(LeaderHint(leader.leader_id, leader.leader_epoch, endpoint))
        if data.error_code == ErrorCode.SNAPSHOT_NOT_FOUND:
            return None
        if data.error_code == ErrorCode.POSITION_OUT_OF_RANGE and position:
            return _Chunk(b"", 0, _OTHER_COPY)
        check_error(client, "FetchSnapshot", data.error_code)
        return _chunk(data, snapshot, position, leader_epoch)

    return client.ask_leader(ask, lowest_epoch=snapshot.epoch)


def _request(
    cluster_id: str | None, snapshot: OffsetAndEpoch, position: int, leader_epoch: int
) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequestPartitionSnapshot(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=leader_epoch,
        snapshot_id=FetchSnapshotRequestSnapshotId(snapshot.offset, snapshot.epoch),
        position=position,
    )
    topic = FetchSnapshotRequestTopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])
    return FetchSnapshotRequest(cluster_id=cluster_id, max_bytes=CHUNK_BYTES, topics=[topic])


def _chunk(
    data: FetchSnapshotResponsePartitionSnapshot,
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
    return _Chunk(piece, data.size, leader_epoch)
