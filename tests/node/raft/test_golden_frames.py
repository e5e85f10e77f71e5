"""The quorum traffic of real Kafka, through the core's own messages and back to the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.golden_data import read_json_lines

from kvorum.node.raft.translation import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from kvorum.raft.messages import RequestFailed
from kvorum.wire.headers import decode_request_frame, decode_response_frame
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.primitives import Message

LISTENER = "CONTROLLER"
CLUSTER_IDS = {
    "dynamic-4.3.1": "OLTmUuRNp_I3DZ4mDicTZQ",
    "static-3.9.1": "M2UJOuVP016n91j2bDYYYA",
    "ladder-4.3.1": "bqaHdm6s-5zwXpFf_OtiRA",
}
RESPONSES: dict[int, type[Message]] = {
    1: FetchResponse,
    52: VoteResponse,
    53: BeginQuorumEpochResponse,
    54: EndQuorumEpochResponse,
    59: FetchSnapshotResponse,
}
REQUESTS: dict[int, type[Message]] = {
    1: FetchRequest,
    52: VoteRequest,
    53: BeginQuorumEpochRequest,
    54: EndQuorumEpochRequest,
    59: FetchSnapshotRequest,
}
Through = Callable[[Any, int, str], Message]


def fetch_request(message: FetchRequest, version: int, cluster_id: str) -> Message:
    read = fetch.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, FetchResponse)
    return fetch.write_request(read, cluster_id=cluster_id, version=version)


def vote_request(message: VoteRequest, version: int, cluster_id: str) -> Message:
    read = vote.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, VoteResponse)
    return vote.write_request(read, cluster_id=cluster_id)


def begin_request(message: BeginQuorumEpochRequest, version: int, cluster_id: str) -> Message:
    read = begin_quorum_epoch.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, BeginQuorumEpochResponse)
    return begin_quorum_epoch.write_request(read, cluster_id=cluster_id)


def end_request(message: EndQuorumEpochRequest, version: int, cluster_id: str) -> Message:
    read = end_quorum_epoch.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, EndQuorumEpochResponse)
    return end_quorum_epoch.write_request(read, cluster_id=cluster_id, version=version)


def snapshot_request(message: FetchSnapshotRequest, version: int, cluster_id: str) -> Message:
    read = fetch_snapshot.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, FetchSnapshotResponse)
    return fetch_snapshot.write_request(read, cluster_id=cluster_id)


def fetch_response(message: FetchResponse, version: int, cluster_id: str) -> Message:
    read = fetch.read_response(message, listener_name=LISTENER, batches=())
    assert not isinstance(read, RequestFailed)
    partition = fetch.partition_of(message)
    assert partition is not None
    records = memoryview(partition.records or b"")
    return fetch.write_answer(read, version=version, listener_name=LISTENER, records=records)


def vote_response(message: VoteResponse, version: int, cluster_id: str) -> Message:
    read = vote.read_response(message, listener_name=LISTENER)
    assert not isinstance(read, RequestFailed)
    return vote.write_answer(read, version=version, listener_name=LISTENER)


def begin_response(message: BeginQuorumEpochResponse, version: int, cluster_id: str) -> Message:
    read = begin_quorum_epoch.read_response(message, listener_name=LISTENER)
    assert not isinstance(read, RequestFailed)
    return begin_quorum_epoch.write_answer(read, version=version, listener_name=LISTENER)


def end_response(message: EndQuorumEpochResponse, version: int, cluster_id: str) -> Message:
    read = end_quorum_epoch.read_response(message, listener_name=LISTENER)
    assert not isinstance(read, RequestFailed)
    return end_quorum_epoch.write_answer(read, version=version, listener_name=LISTENER)


def snapshot_response(message: FetchSnapshotResponse, version: int, cluster_id: str) -> Message:
    read = fetch_snapshot.read_response(message, listener_name=LISTENER)
    assert not isinstance(read, RequestFailed)
    partition = fetch_snapshot.partition_of(message)
    assert partition is not None
    part = bytes(partition.unaligned_records or b"")
    return fetch_snapshot.write_answer(read, version=version, listener_name=LISTENER, part=part)


THROUGH: dict[tuple[int, str], Through] = {
    (1, "request"): fetch_request,
    (52, "request"): vote_request,
    (53, "request"): begin_request,
    (54, "request"): end_request,
    (59, "request"): snapshot_request,
    (1, "response"): fetch_response,
    (52, "response"): vote_response,
    (53, "response"): begin_response,
    (54, "response"): end_response,
    (59, "response"): snapshot_response,
}


def message_of(exchange: dict[str, Any]) -> Message:
    frame, key = bytes.fromhex(exchange["frame_hex"]), exchange["api_key"]
    version = exchange["api_version"]
    if exchange["direction"] == "request":
        _, body = decode_request_frame(frame)
        return REQUESTS[key].decode(bytes(body), version)
    return decode_response_frame(frame, response_class=RESPONSES[key], version=version)[1]


@pytest.mark.parametrize("name", sorted(CLUSTER_IDS))
def test_what_a_quorum_said_comes_through_unchanged(golden: Path, name: str) -> None:
    seen: set[tuple[int, str]] = set()
    for exchange in read_json_lines(golden / "raft-trace" / f"{name}.jsonl.gz"):
        kind = (exchange["api_key"], exchange["direction"])
        if kind not in THROUGH:
            continue
        message, version = message_of(exchange), exchange["api_version"]
        again = THROUGH[kind](message, version, CLUSTER_IDS[name])
        assert again.encode(version) == message.encode(version), exchange["json"]
        seen.add(kind)
    assert len(seen) >= (2 if name == "ladder-4.3.1" else 10)
