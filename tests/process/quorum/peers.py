"""Peers of a quorum: a good one's requests, to be spoilt one by one, and a peer in name only."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from tests.support.fake_node import all_versions
from tests.support.node import CLUSTER_ID, Node
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.waiting import Threads, wait_for_change

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.primitives import Message

# Fields, each named by the way to it; a value that is a function is asked, with what it is about.
Spoilt = dict[str, object]
TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
BYTES_MAX = 1024 * 1024
QUORUM_KEYS = (
    ApiKey.FETCH,
    ApiKey.API_VERSIONS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
)
_SIZE = struct.Struct(">i")
# Takes a request and returns its response; None for one that is left without.
Answer = Callable[[Message], Message | None]
# Takes a whole response, size and all, and returns what is sent in its place; None ends it all.
Spoil = Callable[[bytes], bytes | None]


def spoil(message: Any, spoilt: Spoilt, about: object) -> None:
    for path, value in spoilt.items():
        *steps, last = path.split(".")
        target = message
        for step in steps:
            target = target[int(step)] if step.isdigit() else getattr(target, step)
        setattr(target, last, value(about) if callable(value) else value)


def name_of(spoilt: Spoilt, *, without: str) -> str:
    """Return what is spoilt in a few words, for the name of a test."""
    return ", ".join(f"{path.removeprefix(without)}={_word(what)}" for path, what in spoilt.items())


def _word(what: object) -> str:
    if isinstance(what, bytes):
        return f"{len(what)} times {what[:1].hex()}"
    return getattr(what, "__name__", str(what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The receiver, the apparent sender, and the state."""

    asked: Node
    asking: Node
    leader: Node
    leader_port: int
    epoch: int
    end_offset: int

    def asked_instead(self, asked: Node) -> "Setting":
        """Return the same with another node to be asked."""
        return replace(self, asked=asked)

    def vote(self) -> VoteRequest:
        """Return a request for a vote in the epoch after this."""
        partition = VoteRequest.PartitionData(
            replica_epoch=self.epoch + 1,
            replica_id=self.asking.node_id,
            replica_directory_id=self.asking.directory_id,
            voter_directory_id=self.asked.directory_id,
            last_offset_epoch=self.epoch,
            last_offset=self.end_offset,
        )
        topic = VoteRequest.TopicData(TOPIC, [partition])
        return VoteRequest(CLUSTER_ID, self.asked.node_id, [topic])

    def begin(self) -> BeginQuorumEpochRequest:
        """Return word from the leader that it leads."""
        partition = BeginQuorumEpochRequest.PartitionData(
            voter_directory_id=self.asked.directory_id,
            leader_id=self.leader.node_id,
            leader_epoch=self.epoch,
        )
        endpoint = BeginQuorumEpochRequest.LeaderEndpoint(
            "CONTROLLER", "127.0.0.1", self.leader_port
        )
        topic = BeginQuorumEpochRequest.TopicData(TOPIC, [partition])
        return BeginQuorumEpochRequest(CLUSTER_ID, self.asked.node_id, [topic], [endpoint])

    def end(self) -> EndQuorumEpochRequest:
        """Return word from the leader that it leads no more."""
        partition = EndQuorumEpochRequest.PartitionData(
            leader_id=self.leader.node_id, leader_epoch=self.epoch
        )
        topic = EndQuorumEpochRequest.TopicData(TOPIC, [partition])
        return EndQuorumEpochRequest(CLUSTER_ID, [topic])

    def fetch(self) -> FetchRequest:
        """Return a fetch of a replica that has everything."""
        partition = FetchRequest.FetchPartition(
            current_leader_epoch=self.epoch,
            fetch_offset=self.end_offset,
            last_fetched_epoch=self.epoch,
            replica_directory_id=self.asking.directory_id,
        )
        topic = FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])
        state = FetchRequest.ReplicaState(self.asking.node_id)
        return FetchRequest(CLUSTER_ID, replica_state=state, max_bytes=BYTES_MAX, topics=[topic])

    def fetch_snapshot(self) -> FetchSnapshotRequest:
        """Return a request for a snapshot that no node has."""
        partition = FetchSnapshotRequest.PartitionSnapshot(
            current_leader_epoch=self.epoch,
            snapshot_id=FetchSnapshotRequest.SnapshotId(self.end_offset + 1, self.epoch),
            replica_directory_id=self.asking.directory_id,
        )
        topic = FetchSnapshotRequest.TopicSnapshot(TOPIC, [partition])
        return FetchSnapshotRequest(CLUSTER_ID, self.asking.node_id, BYTES_MAX, [topic])


def now_in(quorum: ProxiedQuorum, *, asks_leader: bool) -> Setting:
    """Return how things stand once all logs are the same; a follower is the one who asks."""
    answer = quorum.settled_logs()
    leader = quorum.members[answer.leader_id]
    followers = [one for one in quorum.members.values() if one is not leader]
    asked, asking = (leader, followers[0]) if asks_leader else (followers[0], followers[1])
    return Setting(
        asked=asked,
        asking=asking,
        leader=leader,
        leader_port=quorum.network.ports[leader.node_id],
        epoch=answer.leader_epoch,
        end_offset=answer.high_watermark,
    )


class FakePeer:
    """Answers everybody who connects; as a context it listens, and is gone at the end."""

    def __init__(
        self,
        port: int,
        answer: Answer,
        *,
        spoil: Spoil | None = None,
        versions: ApiVersionsResponse | None = None,
    ) -> None:
        self._port = port
        self._answer = answer
        self._spoil = spoil
        self._versions = versions or ApiVersionsResponse(api_keys=all_versions(QUORUM_KEYS))
        self._listening: socket.socket | None = None
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._acceptor, self._servers = Threads(), Threads()
        self._heard: list[Message] = []
        self._connection_count = 0

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._acceptor.start(self._accept, self._listening)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._acceptor.join()
        with self._changed:
            connections = list(self._open)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._servers.join()

    def heard(self) -> list[Message]:
        with self._changed:
            return list(self._heard)

    def wait_until(self, condition: Callable[[list[Message], int], bool]) -> None:
        """Wait for something that is true of all requests so far, and the count of connections."""
        wait_for_change(
            self._changed,
            lambda: condition(self._heard, self._connection_count),
            "enough is heard",
            otherwise=lambda: f"{len(self._heard)} requests, {self._connection_count} connections",
        )

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with self._changed:
                    self._open.add(connection)
                    self._connection_count += 1
                    self._changed.notify_all()
                self._servers.start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError), connection:
            while True:
                (size,) = _SIZE.unpack(_read(connection, _SIZE.size))
                data = self._respond(_read(connection, size))
                if data is None:
                    break
                connection.sendall(data)
        with self._changed:
            self._open.discard(connection)

    def _respond(self, frame: bytes) -> bytes | None:
        """Return what to send for a request; nothing where it is left without a response."""
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        request = request_class(header.request_api_key).decode(bytes(body), version)
        is_first = isinstance(request, ApiVersionsRequest)
        response = self._versions if is_first else self._answer(request)
        if not is_first:
            with self._changed:
                self._heard.append(request)
                self._changed.notify_all()
        if response is None:
            return b""
        data = with_size(
            encode_response_frame(response, version=version, correlation_id=header.correlation_id)
        )
        return data if is_first or self._spoil is None else self._spoil(data)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data
