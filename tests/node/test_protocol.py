"""A node meets requests, good and bad, byte by byte, and supports what the statement says."""

import asyncio
import errno
import json
import random
import socket
import struct
from contextlib import ExitStack
from typing import TypeVar

import pytest
from tests.node.embedded_cluster import FRAME_BYTES_MAX
from tests.support.raw_client import CUT_OFF, RawClient
from tests.support.source_tree import ROOT
from tests.support.topics import create_request
from tests.support.waiting import wait_for

from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.node.compatibility import Compatibility, compatibility, compatibility_text
from kvorum.node.handlers.registry import broker_apis, controller_apis
from kvorum.node.serving.request_handler import ServedApis, encode_answer
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.describe_acls import DescribeAclsRequest
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.primitives import Message

Node = TypeVar("Node")
SOFTWARE = ApiVersionsRequest("raw-client", "1.0")
A_SIZE_TOO_LARGE = {"a size above the limit": struct.pack(">i", FRAME_BYTES_MAX + 1)}
GARBAGE = CUT_OFF | A_SIZE_TOO_LARGE
LONGEST = 32_767
STATEMENT = ROOT / "docs" / "compatibility.json"
VERSION = 4


def is_alive(node: Cluster) -> bool:
    with RawClient(node.bootstrap_servers) as client:
        return bool(client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers)


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_ends_its_connection_and_harms_no_client(
    node: Cluster, broker: RawClient, controller: RawClient, what: str
) -> None:
    with RawClient(node.bootstrap_servers) as bystander:
        for client in (broker, controller):
            client.send_bytes(GARBAGE[what])
            assert client.is_closed()
        assert bystander.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers


def test_a_client_without_an_address_of_its_own_binds_none(
    node: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with RawClient(node.bootstrap_servers) as client:
        assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers


def test_random_bytes_harm_no_client(node: Cluster) -> None:
    dice = random.Random(1)
    for _ in range(200):
        with RawClient(node.bootstrap_servers) as client:
            frame = struct.pack(">hh", dice.choice(list(API_SPECS)), dice.randrange(15))
            client.send_frame(frame + dice.randbytes(dice.randrange(120)))
    assert is_alive(node)


def test_an_api_of_the_other_listener_ends_the_connection(broker: RawClient) -> None:
    broker.send(request_class(ApiKey.BROKER_REGISTRATION)(), 4)
    assert broker.is_closed()


def test_a_request_of_another_kind_of_node_ends_the_connection(controller: RawClient) -> None:
    controller.send(MetadataRequest(topics=[]), 12)
    assert controller.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(broker: RawClient) -> None:
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, 0) + b"\0"
    broker.send_frame(header + b"a body of the future")
    frame = broker.read_frame()
    assert frame is not None
    read, response = decode_response_frame(frame, response_class=ApiVersionsResponse, version=0)
    assert read.correlation_id == 7
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [
        (ApiKey.API_VERSIONS, 0, 5)
    ]


@pytest.mark.parametrize("name", ["", "-a", "a-", "white space", "ä", "a\n"])
def test_software_names_that_make_no_sense_are_refused(broker: RawClient, name: str) -> None:
    response = broker.ask(ApiVersionsRequest(name, "1.0"), ApiVersionsResponse, 3)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert not response.api_keys


def test_features_at_level_zero_are_reported_from_version_4_on(broker: RawClient) -> None:
    old = broker.ask(SOFTWARE, ApiVersionsResponse, 3)
    new = broker.ask(SOFTWARE, ApiVersionsResponse, 4)
    assert [feature.name for feature in old.supported_features] == ["metadata.version"]
    assert {feature.name for feature in new.supported_features} >= {"kraft.version"}
    finalized = {feature.name: feature.max_version_level for feature in new.finalized_features}
    assert finalized["metadata.version"] == LATEST_PRODUCTION_METADATA_VERSION
    assert finalized["kraft.version"] == 1


def test_a_client_that_means_another_node_is_to_begin_again(broker: RawClient) -> None:
    """KIP-1242; half of a name is not a name."""
    known = broker.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
    here, node_id = known.cluster_id, known.brokers[0].node_id
    answers = {
        (here, node_id): ErrorCode.NONE,
        (None, -1): ErrorCode.NONE,
        ("AAAAAAAAAAAAAAAAAAAAAg", node_id): ErrorCode.REBOOTSTRAP_REQUIRED,
        (here, node_id + 1): ErrorCode.REBOOTSTRAP_REQUIRED,
        (here, -1): ErrorCode.INVALID_REQUEST,
        (None, node_id): ErrorCode.INVALID_REQUEST,
    }
    for (cluster_id, meant), code in answers.items():
        request = ApiVersionsRequest("raw-client", "1.0", cluster_id, meant)
        answered = broker.ask(request, ApiVersionsResponse, 5)
        assert answered.error_code == code, (cluster_id, meant)
        assert bool(answered.api_keys) is (code is ErrorCode.NONE)


def test_responses_come_in_the_order_of_the_requests(broker: RawClient) -> None:
    expected = [broker.send(request, 4) for request in [SOFTWARE] * 50]
    frames = [broker.read_frame() for _ in expected]
    assert [struct.unpack(">i", frame[:4])[0] for frame in frames if frame] == expected


def test_requests_in_single_bytes_hold_no_node_up_and_are_answered(node: Cluster) -> None:
    frame = encode_request_frame(SOFTWARE, version=4, correlation_id=5, client_id=None)
    with ExitStack() as opened:
        slow = [opened.enter_context(RawClient(node.bootstrap_servers)) for _ in range(50)]
        for number, byte in enumerate(struct.pack(">i", len(frame)) + frame):
            for client in slow:
                client.send_bytes(bytes([byte]))
            if number % 10 == 0:
                assert is_alive(node)
        assert all(client.read_frame() is not None for client in slow)


def test_a_client_id_and_a_topic_that_are_no_utf_8_are_answered(broker: RawClient) -> None:
    header = struct.pack(">hhih", ApiKey.METADATA, 1, 7, 2) + b"\xff\xfe"
    broker.send_frame(header + struct.pack(">ih", 1, 2) + b"\xc3(")
    frame = broker.read_frame()
    assert frame is not None
    read, response = decode_response_frame(frame, response_class=MetadataResponse, version=1)
    assert read.correlation_id == 7
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("\ufffd(", ErrorCode.INVALID_TOPIC_EXCEPTION)
    ]


def test_a_client_that_reads_nothing_is_waited_for_alone(node: Cluster) -> None:
    with RawClient(node.bootstrap_servers) as slow:
        slow.socket.setblocking(False)
        frame = encode_request_frame(SOFTWARE, version=4, correlation_id=1, client_id="slow")
        data = (struct.pack(">i", len(frame)) + frame) * 1000
        sent = 0
        try:
            while sent < 400 * len(data):
                sent += slow.socket.send(data)
        except BlockingIOError:
            pass
        assert is_alive(node)


def minimal(key: int) -> Message:
    """Return a request that says as little as it can."""
    if key == ApiKey.API_VERSIONS:
        return SOFTWARE
    if key == ApiKey.DESCRIBE_ACLS:
        return DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    if key == ApiKey.METADATA:
        return MetadataRequest(topics=[])
    return request_class(key)()


def served(apis: ServedApis[Node]) -> list[tuple[int, int]]:
    return [
        (api.key, version)
        for api in apis.values()
        for version in range(api.min_version, api.max_version + 1)
    ]


@pytest.mark.parametrize(("key", "version"), served(broker_apis()))
def test_every_api_of_the_broker_is_answered_in_every_version(
    broker: RawClient, key: int, version: int
) -> None:
    request = minimal(key)
    if isinstance(request, ProduceRequest):
        request.acks = 1
    broker.ask(request, response_class(key), version)


@pytest.mark.parametrize(("key", "version"), served(controller_apis()))
def test_every_api_of_the_controller_is_answered_in_every_version(
    controller: RawClient, key: int, version: int
) -> None:
    controller.ask(minimal(key), response_class(key), version)


def test_what_is_listed_is_what_is_served(broker: RawClient, controller: RawClient) -> None:
    for client, apis in ((broker, broker_apis()), (controller, controller_apis())):
        listed = client.ask(SOFTWARE, ApiVersionsResponse, 4).api_keys
        assert {(key.api_key, key.min_version, key.max_version) for key in listed} == {
            (api.key, api.min_listed, api.max_version) for api in apis.values()
        }


def test_a_controller_names_the_controllers(controller: RawClient, node: Cluster) -> None:
    response = controller.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
    assert response.error_code == ErrorCode.NONE
    assert [f"{one.host}:{one.port}" for one in response.brokers] == [node.controller_servers]
    assert response.controller_id == node.leader_id


def test_nothing_is_answered_without_acknowledgement_and_an_error_ends_the_connection(
    broker: RawClient,
) -> None:
    broker.send(ProduceRequest(acks=0), 9)
    broker.ask(SOFTWARE, ApiVersionsResponse, 3)
    data = ProduceRequest.TopicProduceData(
        "absent", partition_data=[ProduceRequest.PartitionProduceData(0, b"")]
    )
    broker.send(ProduceRequest(acks=0, topic_data=[data]), 9)
    assert broker.is_closed()


def test_a_topic_that_is_missed_is_created(node: Cluster) -> None:
    wanted = [MetadataRequestTopic(name="missed")]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
    with RawClient(node.bootstrap_servers) as client:
        first = client.ask(request, MetadataResponse, 9)
        assert first.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        wait_for(
            lambda: client.ask(request, MetadataResponse, 9).topics[0].error_code == 0,
            "the topic is there",
        )


def test_a_topic_is_there_when_its_creation_is_acknowledged(broker: RawClient) -> None:
    request = create_request(["acked"], partition_count=2)
    first, again = (broker.ask(request, CreateTopicsResponse, 7).topics for _ in range(2))
    assert [one.error_code for one in first] == [ErrorCode.NONE]
    assert [one.error_code for one in again] == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_controller_describes_scram_credentials(controller: RawClient) -> None:
    request = DescribeUserScramCredentialsRequest(
        [DescribeUserScramCredentialsRequest.UserName("nobody")]
    )
    response = controller.ask(request, DescribeUserScramCredentialsResponse, 0)
    assert response.error_code == ErrorCode.NONE
    assert [one.error_code for one in response.results] == [ErrorCode.RESOURCE_NOT_FOUND]


def inner(request: Message, version: int) -> bytes:
    return encode_request_frame(request, version=version, correlation_id=1, client_id="inner")


USER = bytes.fromhex("0000") + b"\x05User\x0aANONYMOUS\x00\x00"
"""Kafka's form of a principal: version 0, type, name, no token, no tags."""


ADDRESS = b"\x7f\0\0\1"


CREATION = inner(CreateTopicsRequest(), 7)


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (EnvelopeRequest(CREATION, b"", ADDRESS), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(CREATION, USER, ADDRESS[:3]), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(inner(FetchRequest(), 13), USER, ADDRESS), ErrorCode.INVALID_REQUEST),
        (EnvelopeRequest(b"\x7f\xff garbage", USER, ADDRESS), ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=["no principal", "an address of no kind", "nothing that is forwarded", "garbage"],
)
def test_envelopes_that_make_no_sense_are_refused(
    controller: RawClient, envelope: EnvelopeRequest, code: ErrorCode
) -> None:
    assert controller.ask(envelope, EnvelopeResponse, 0).error_code == code


@pytest.mark.parametrize("letter", ["x", "é", "€"])
def test_a_message_that_does_not_fit_is_cut_between_two_characters(letter: str) -> None:
    topic = CreateTopicsResponse.CreatableTopicResult(
        name="t", error_message=letter * LONGEST + "!"
    )
    frame = encode_answer(CreateTopicsResponse(topics=[topic]), version=7, correlation_id=5)
    header, response = decode_response_frame(frame, response_class=CreateTopicsResponse, version=7)
    message = response.topics[0].error_message
    assert header.correlation_id == 5
    assert message is not None
    assert set(message) == {letter}
    assert LONGEST - len(letter.encode()) < len(message.encode()) <= LONGEST


def test_anything_else_that_does_not_fit_is_an_error() -> None:
    topic = CreateTopicsResponse.CreatableTopicResult(name="x" * (LONGEST + 1))
    with pytest.raises(EncodeError):
        encode_answer(CreateTopicsResponse(topics=[topic]), version=7, correlation_id=5)


def test_the_longest_name_is_refused_and_not_met_with_silence(controller: RawClient) -> None:
    topic = CreateTopicsRequest.CreatableTopic("x" * LONGEST, 1, 1)
    response = controller.ask(CreateTopicsRequest([topic], 60_000), CreateTopicsResponse, 7)
    assert response.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


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
    offered = {
        kind: {(each.name, each.min_version, each.max_version) for each in one.supported_features}
        for kind, one in answers.items()
    }
    assert offered["broker"] == {
        (entry["name"], entry["min_level"], entry["max_level"]) for entry in stated()["features"]
    }
    kept_for_real_brokers = {("streams.version", 0, 1)}
    assert offered["controller"] - offered["broker"] == kept_for_real_brokers
