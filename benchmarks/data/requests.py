"""Small requests of many clients: ours beside real Kafka, and beside a server that only echoes.

The echo is the floor: it has the event loop, the sockets and the client of ours, and does nothing.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, NamedTuple

from benchmarks.data.brokers import broker
from benchmarks.data.ready_requests import answered_per_s, ask, framed
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kvorum.wire.messages.metadata import MetadataRequest
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch

FEW, MANY = 10, 500
ROUNDS: Final = 3
WARM_UP_S: Final = 4.0
MEASURED_S: Final = 5.0
TOPIC: Final = "of-many"
PRODUCE_VERSION: Final = 9
ECHO: Final = (sys.executable, "-m", "benchmarks.data.echo")
_Start = Callable[[], AbstractContextManager[str]]


class Load(NamedTuple):
    """A request that many clients send again and again."""

    what: str
    request: bytes
    clients: int


class Server(NamedTuple):
    """A server, and for each load how many requests a second it has answered in each round."""

    name: str
    start: _Start
    answered_per_s: dict[str, list[float]]


def rows(divisor: int) -> list[Row]:
    """Return a row for each load and peer; a divided run has fewer clients and less time."""
    loads = [
        load._replace(clients=max(1, load.clients // divisor))
        for load in [*_looking(), *_producing()]
    ]
    kafka = kafka_nodes()[0]
    ours = Server("kvorum", lambda: _started(kvorum_node()), {})
    peers = [Server("the echo", _echoing, {}), Server(kafka.name, lambda: _started(kafka), {})]
    servers = [ours, *peers]
    for turn in range(ROUNDS):
        for server in servers if turn % 2 == 0 else reversed(servers):
            with server.start() as address:
                _measure(address, server, loads, divisor)
    return [
        Row(
            f"{load.what}, {load.clients} clients",
            peer.name,
            statistics.median(ours.answered_per_s[load.what]),
            statistics.median(peer.answered_per_s[load.what]),
            "r/s",
            is_rate=True,
        )
        for load in loads
        for peer in peers
    ]


def _looking() -> list[Load]:
    """Return the loads that change nothing."""
    topic = MetadataRequest.MetadataRequestTopic(name=TOPIC)
    quorum = DescribeQuorumRequest.TopicData(
        "__cluster_metadata", [DescribeQuorumRequest.PartitionData(0)]
    )
    described = DescribeTopicPartitionsRequest.TopicRequest(TOPIC)
    return [
        Load("ApiVersions", framed(ApiVersionsRequest("bench", "1"), 4), FEW),
        Load("Metadata of one topic", framed(MetadataRequest([topic]), 12), FEW),
        Load(
            "DescribeTopicPartitions", framed(DescribeTopicPartitionsRequest([described]), 0), FEW
        ),
        Load("DescribeQuorum", framed(DescribeQuorumRequest([quorum]), 2), FEW),
    ]


def _producing() -> list[Load]:
    records = bytes(build_batch([RecordData(bytes(1024), None, 1, ())]))
    data = ProduceRequest.PartitionProduceData(0, records)
    topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
    request = framed(ProduceRequest(None, -1, 30_000, [topic]), PRODUCE_VERSION)
    return [Load(f"a record of 1 KiB, {count}", request, count) for count in (FEW, MANY)]


@contextmanager
def _started(candidate: Candidate) -> Generator[str]:
    with broker(candidate) as running:
        running.create_topic(TOPIC)
        request = _producing()[0].request
        _, response = decode_response_frame(
            ask(running.servers, request), response_class=ProduceResponse, version=PRODUCE_VERSION
        )
        code = response.responses[0].partition_responses[0].error_code
        if code != ErrorCode.NONE:
            raise AssertionError(f"{candidate.name} answers {ErrorCode(code).name}")
        yield running.servers


@contextmanager
def _echoing() -> Generator[str]:
    with subprocess.Popen(ECHO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()


def _measure(address: str, server: Server, loads: list[Load], divisor: int) -> None:
    for _, request, clients in loads:
        answered_per_s(address, request, clients=clients, seconds=WARM_UP_S / divisor)
    for what, request, clients in loads:
        rate = answered_per_s(address, request, clients=clients, seconds=MEASURED_S / divisor)
        server.answered_per_s.setdefault(what, []).append(rate)
