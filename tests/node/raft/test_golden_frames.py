"""The quorum traffic of real Kafka, through the core's own messages and back to the same bytes."""

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
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import request_class, response_class
from kvorum.wire.headers import decode_request_frame, decode_response_frame
from kvorum.wire.primitives import Message

LISTENER = "CONTROLLER"
CLUSTER_IDS = {
    "dynamic-4.3.1": "OLTmUuRNp_I3DZ4mDicTZQ",
    "static-3.9.1": "M2UJOuVP016n91j2bDYYYA",
    "ladder-4.3.1": "bqaHdm6s-5zwXpFf_OtiRA",
}
TRANSLATIONS: dict[int, Any] = {
    ApiKey.FETCH: fetch,
    ApiKey.VOTE: vote,
    ApiKey.BEGIN_QUORUM_EPOCH: begin_quorum_epoch,
    ApiKey.END_QUORUM_EPOCH: end_quorum_epoch,
    ApiKey.FETCH_SNAPSHOT: fetch_snapshot,
}


def request_again(key: int, message: Message, version: int, cluster_id: str) -> Message:
    """Read a request as the core does, and write what was read."""
    translation = TRANSLATIONS[key]
    read = translation.read_request(message, cluster_id=cluster_id)
    assert not isinstance(read, Message)
    options = {"version": version} if key in {ApiKey.FETCH, ApiKey.END_QUORUM_EPOCH} else {}
    written: Message = translation.write_request(read, cluster_id=cluster_id, **options)
    return written


def response_again(key: int, message: Any, version: int) -> Message:
    """Read a response as the core does, and write what was read, with the records of this one."""
    translation = TRANSLATIONS[key]
    options: dict[str, Any] = {"batches": ()} if key == ApiKey.FETCH else {}
    read = translation.read_response(message, listener_name=LISTENER, **options)
    assert not isinstance(read, RequestFailed)
    options = {}
    if key == ApiKey.FETCH:
        options["records"] = memoryview(translation.partition_of(message).records or b"")
    elif key == ApiKey.FETCH_SNAPSHOT:
        options["part"] = bytes(translation.partition_of(message).unaligned_records or b"")
    written: Message = translation.write_answer(
        read, version=version, listener_name=LISTENER, **options
    )
    return written


def message_of(exchange: dict[str, Any]) -> Message:
    frame, key = bytes.fromhex(exchange["frame_hex"]), exchange["api_key"]
    version = exchange["api_version"]
    if exchange["direction"] == "request":
        _, body = decode_request_frame(frame)
        return request_class(key).decode(bytes(body), version)
    return decode_response_frame(frame, response_class=response_class(key), version=version)[1]


@pytest.mark.parametrize("name", sorted(CLUSTER_IDS))
def test_what_a_quorum_said_comes_through_unchanged(golden: Path, name: str) -> None:
    seen: set[tuple[int, bool]] = set()
    for exchange in read_json_lines(golden / "raft-trace" / f"{name}.jsonl.gz"):
        key, is_request = exchange["api_key"], exchange["direction"] == "request"
        if key not in TRANSLATIONS:
            continue
        message, version = message_of(exchange), exchange["api_version"]
        again = (
            request_again(key, message, version, CLUSTER_IDS[name])
            if is_request
            else response_again(key, message, version)
        )
        assert again.encode(version) == message.encode(version), exchange["json"]
        seen.add((key, is_request))
    assert len(seen) >= (2 if name == "ladder-4.3.1" else 10)
