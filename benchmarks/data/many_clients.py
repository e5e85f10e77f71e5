"""A broker with many clients and many groups, each client on a connection of its own.

The clients put ready-made requests on their sockets, so that little of the time is theirs.
"""

import asyncio
import statistics
import struct
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

from benchmarks.data.brokers import RunningBroker, broker
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordData, build_batch

CLIENTS: Final = (10, 500)
GROUPS: Final = (100, 1_000)
ROUNDS: Final = 3
PRODUCE_S: Final = 10.0
COMMITS_OF_GROUP: Final = 20
TOPIC: Final = "of-many"
SESSION_MS: Final = 45_000
START_S_MAX: Final = 60.0
NO_DELAY: Final = {"group.initial.rebalance.delay.ms": "0"}
_PRODUCE_VERSION: Final = 9
_JOIN_VERSION: Final = 3
"""Members of this version are let in at once, without a second request for their id."""
_SYNC_VERSION: Final = 2
_COMMIT_VERSION: Final = 7
_FIND_VERSION: Final = 3
_SIZE: Final = struct.Struct(">i")
Response = TypeVar("Response", bound=Message)


@dataclass
class Figures:
    """The figures of one candidate, for each number of clients or groups one for each round."""

    produced_per_s: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    formed_s: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    commits_per_s: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


class Connection:
    """A connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, servers: str) -> Self:
        host, _, port = servers.partition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask_raw(self, request: bytes) -> bytes:
        """Send a request with its size before it; return the frame of the response."""
        self._writer.write(request)
        (size,) = _SIZE.unpack(await self._reader.readexactly(_SIZE.size))
        return await self._reader.readexactly(size)

    async def ask(self, request: Message, kind: type[Response], version: int) -> Response:
        _, response = decode_response_frame(
            await self.ask_raw(_framed(request, version)), response_class=kind, version=version
        )
        return response

    def close(self) -> None:
        self._writer.close()


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of clients and groups are divided."""
    clients, groups = (
        [max(1, count // divisor) for count in counts] for counts in (CLIENTS, GROUPS)
    )
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with _started(candidate) as running:
                asyncio.run(_measure(running.servers, figures, clients=clients, groups=groups))
    (_, ours), (peer, theirs) = candidates
    found: list[Row] = []
    for count in clients:
        what = f"produce requests of 1 KiB, {count} clients"
        found.append(_row(what, peer, ours.produced_per_s[count], theirs.produced_per_s[count]))
    for count in groups:
        mine, other = (
            statistics.median(ours.formed_s[count]),
            statistics.median(theirs.formed_s[count]),
        )
        found.append(Row(f"{count:,} groups of one are formed", peer.name, mine, other, "s"))
    for count in groups:
        what = f"commits of {count:,} groups"
        found.append(_row(what, peer, ours.commits_per_s[count], theirs.commits_per_s[count]))
    return found


def _row(what: str, peer: Candidate, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    mine, other = statistics.median(ours), statistics.median(theirs)
    return Row(what, peer.name, mine, other, "r/s", is_rate=True)


@contextmanager
def _started(candidate: Candidate) -> Generator[RunningBroker]:
    with broker(candidate, NO_DELAY) as running:
        running.create_topic(TOPIC)
        yield running


async def _measure(
    servers: str, figures: Figures, *, clients: Sequence[int], groups: Sequence[int]
) -> None:
    await _produce(servers, max(clients), seconds=PRODUCE_S / 2)
    for count in clients:
        rate = await _produce(servers, count, seconds=PRODUCE_S)
        figures.produced_per_s.setdefault(count, []).append(rate)
    await _form(servers, ["warm-up"])
    for count in groups:
        names = [f"group-{count}-{number}" for number in range(count)]
        before = time.perf_counter()
        members = await _form(servers, names)
        figures.formed_s.setdefault(count, []).append(time.perf_counter() - before)
        before = time.perf_counter()
        await asyncio.gather(*(member.commit_often() for member in members))
        took_s = time.perf_counter() - before
        figures.commits_per_s.setdefault(count, []).append(count * COMMITS_OF_GROUP / took_s)
        for member in members:
            member.connection.close()


async def _produce(servers: str, clients: int, *, seconds: float) -> float:
    """Return the requests answered in a second, where every client sends one after the other."""
    records = bytes(build_batch([RecordData(bytes(1024), None, 1, ())]))
    data = ProduceRequest.PartitionProduceData(0, records)
    topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
    request = _framed(ProduceRequest(None, -1, 30_000, [topic]), _PRODUCE_VERSION)
    connections = [await Connection.to(servers) for _ in range(clients)]
    end = time.perf_counter() + seconds
    answered = 0

    async def send(connection: Connection) -> None:
        nonlocal answered
        frame = await connection.ask_raw(request)
        while time.perf_counter() < end:
            frame = await connection.ask_raw(request)
            answered += 1
        _, response = decode_response_frame(
            frame, response_class=ProduceResponse, version=_PRODUCE_VERSION
        )
        _check(response.responses[0].partition_responses[0].error_code)

    before = time.perf_counter()
    await asyncio.gather(*map(send, connections))
    rate = answered / (time.perf_counter() - before)
    for connection in connections:
        connection.close()
    return rate


@dataclass(frozen=True, slots=True)
class Member:
    """The member of a group of one."""

    connection: Connection
    group: str
    member_id: str
    generation: int

    async def commit_often(self) -> None:
        topic = OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 7)])
        request = OffsetCommitRequest(self.group, self.generation, self.member_id, topics=[topic])
        for _ in range(COMMITS_OF_GROUP):
            response = await self.connection.ask(request, OffsetCommitResponse, _COMMIT_VERSION)
            _check(response.topics[0].partitions[0].error_code)


async def _form(servers: str, names: Sequence[str]) -> list[Member]:
    """Connect to the broker once for each group, and have each group formed."""
    return await asyncio.gather(*(_join(servers, name) for name in names))


async def _join(servers: str, group: str) -> Member:
    connection = await Connection.to(servers)

    async def find() -> int:
        request = FindCoordinatorRequest(group)
        return (await connection.ask(request, FindCoordinatorResponse, _FIND_VERSION)).error_code

    await _until_none(find)
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest(
        group, SESSION_MS, SESSION_MS, protocol_type="consumer", protocols=protocols
    )
    joined = JoinGroupResponse()

    async def join() -> int:
        nonlocal joined
        joined = await connection.ask(request, JoinGroupResponse, _JOIN_VERSION)
        return joined.error_code

    await _until_none(join)
    assignment = SyncGroupRequestAssignment(joined.member_id, b"everything")
    sync = SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=[assignment])
    _check((await connection.ask(sync, SyncGroupResponse, _SYNC_VERSION)).error_code)
    return Member(connection, group, joined.member_id, joined.generation_id)


async def _until_none(ask: Callable[[], Awaitable[int]]) -> None:
    """Ask again while the coordinator is not there yet."""
    not_there = {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
    async with asyncio.timeout(START_S_MAX):
        # Only another answer shows that it is there.
        while (code := await ask()) in not_there:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.05)
    _check(code)


def _framed(request: Message, version: int) -> bytes:
    return with_size(
        encode_request_frame(request, version=version, correlation_id=1, client_id="one-of-many")
    )


def _check(code: int) -> None:
    if code != ErrorCode.NONE:
        raise AssertionError(f"the broker answers {ErrorCode(code).name}")
