"""Responses of a quorum of one to Raft's requests."""

from collections.abc import Mapping
from typing import cast

from tests.interop.protocol.building import comparable
from tests.interop.protocol.raft_requests import Quorum
from tests.interop.protocol.requests import Fields
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S

from kvorum.wire.apis import response_class
from kvorum.wire.json_form import Json
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.primitives import Message

CONTROLLERS_ENDPOINTS = 2


# The two logs may have different ends and contents.
OWN = frozenset({"records", "endOffset", "highWatermark", "logStartOffset"})


def quorum_of(address: str) -> Quorum:
    """Return what requests to a lone leader have to name."""
    partition = DescribeQuorumRequest.PartitionData(0)
    topic = DescribeQuorumRequest.TopicData("__cluster_metadata", [partition])
    with RawClient(address) as client:
        cluster = client.ask(
            DescribeClusterRequest(endpoint_type=CONTROLLERS_ENDPOINTS), DescribeClusterResponse, 2
        )
        described = client.ask(DescribeQuorumRequest([topic]), DescribeQuorumResponse, 2)
    found = described.topics[0].partitions[0]
    host, _, port = address.partition(":")
    return Quorum(
        cluster_id=cluster.cluster_id,
        directory_id=found.current_voters[0].replica_directory_id,
        epoch=found.leader_epoch,
        host=host,
        port=int(port),
    )


def without_own(value: Json) -> Json:
    """Return an answer without what the two nodes cannot have in common."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Json]", value)
        return {name: None if name in OWN else without_own(each) for name, each in fields.items()}
    if isinstance(value, list):
        return [without_own(each) for each in cast("list[Fields]", value)]
    return value


def answer(address: str, request: Message, version: int, *, patience_s: float = PATIENCE_S) -> Json:
    """Return what a node says to a request."""
    with RawClient(address) as client:
        client.socket.settimeout(patience_s)
        response = client.ask(request, response_class(request.API_KEY or 0), version)
    return without_own(comparable(response, version))
