"""The compatibility statement is current, and a running node tells exactly what it says."""

import asyncio
import json

from tests.support.source_tree import ROOT

from kvorum.node.compatibility import Compatibility, compatibility, compatibility_text
from kvorum.testing import AsyncCluster
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

STATEMENT = ROOT / "docs" / "compatibility.json"
VERSION = 4


def stated() -> Compatibility:
    found: Compatibility = json.loads(STATEMENT.read_text(encoding="utf-8"))
    return found


async def ask_api_versions(address: str) -> ApiVersionsResponse:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        frame = encode_request_frame(request, version=VERSION, correlation_id=7, client_id="test")
        writer.write(with_size(frame))
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    finally:
        writer.close()
        await writer.wait_closed()
    header, response = decode_response_frame(
        answer, response_class=ApiVersionsResponse, version=VERSION
    )
    assert header.correlation_id == 7
    return response


def test_the_statement_is_what_the_registry_says() -> None:
    assert STATEMENT.read_text(encoding="utf-8") == compatibility_text()


def test_nothing_is_both_served_and_not() -> None:
    for listener in compatibility()["listeners"].values():
        assert {entry["name"] for entry in listener["served"]}.isdisjoint(listener["not_served"])


async def test_a_running_node_tells_the_same_on_both_listeners() -> None:
    async with AsyncCluster() as cluster:
        answers = {
            "broker": await ask_api_versions(cluster.bootstrap_servers),
            "controller": await ask_api_versions(cluster.controller_servers),
        }
    for kind, answer in answers.items():
        assert answer.error_code == 0
        assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [
            (entry["key"], entry["min_version"], entry["max_version"])
            for entry in stated()["listeners"][kind]["served"]
        ]
        assert {
            (each.name, each.min_version, each.max_version) for each in answer.supported_features
        } == {
            (entry["name"], entry["min_level"], entry["max_level"])
            for entry in stated()["features"]
        }
