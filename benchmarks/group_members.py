"""Groups of many members, in both protocols: a rebalance, heartbeats and commits."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import uuid4

from benchmarks.data.asking import Connection, check, until_coordinated
from benchmarks.data.brokers import RunningBroker, broker
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
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
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

Member = TypeVar("Member")
MEMBERS: Final = (100, 1_000)
PARTITIONS_OF_MEMBER: Final = 2
ROUNDS: Final = 3
BEATS_OF_MEMBER: Final = 20
COMMITS_OF_MEMBER: Final = 10
SETTLED_S_MAX: Final = 120.0
GROUP, CLASSIC_GROUP = "of-consumers", "classic"
JOIN_EPOCH: Final = 0
SESSION_MS: Final = 60_000
SETTINGS: Final[Mapping[str, str]] = {
    # The first members wait for the others: all are there in one generation.
    "group.initial.rebalance.delay.ms": "5000",
    "group.max.session.timeout.ms": "600000",
}
FORMED: Final = "a group of {:,} by the consumer protocol is formed"
ONE_MORE: Final = "one more member in a consumer group of {:,}"
BEATS: Final = "heartbeats of a consumer group of {:,}"
COMMITS: Final = "commits of a consumer group of {:,}"
CLASSIC_REBALANCE: Final = "a rebalance of a classic group of {:,}"
CLASSIC_BEATS: Final = "heartbeats of a classic group of {:,}"
TIMES: Final = (FORMED, ONE_MORE, CLASSIC_REBALANCE)
RATES: Final = (BEATS, COMMITS, CLASSIC_BEATS)
_FIND_VERSION: Final = 3
_BEAT_VERSION: Final = 1
_COMMIT_VERSION: Final = 9
_JOIN_VERSION: Final = 3
"""Members of this version are let in at once, without a second request for their id."""
_SYNC_VERSION: Final = 2
_CLASSIC_BEAT_VERSION: Final = 2


@dataclass
class Figures:
    """The figures of one candidate, by what is measured and by the number of members."""

    found: dict[tuple[str, int], list[float]] = field(
        default_factory=dict[tuple[str, int], list[float]]
    )

    def add(self, what: str, members: int, figure: float) -> None:
        self.found.setdefault((what, members), []).append(figure)


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of members are divided."""
    sizes = [max(2, count // divisor) for count in MEMBERS]
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            for count in sizes:
                with _started(candidate, count) as running:
                    asyncio.run(_measure(running.servers, figures, count))
    (_, ours), (peer, theirs) = candidates
    return [
        Row(
            what.format(count),
            peer.name,
            statistics.median(ours.found[what, count]),
            statistics.median(theirs.found[what, count]),
            "s" if what in TIMES else "r/s",
            is_rate=what in RATES,
        )
        for what in (*TIMES, *RATES)
        for count in sizes
    ]


@contextmanager
def _started(candidate: Candidate, members: int) -> Generator[RunningBroker]:
    with broker(candidate, SETTINGS) as running:
        running.create_topic(topic_of(members), partitions=members * PARTITIONS_OF_MEMBER)
        yield running


def topic_of(members: int) -> str:
    return f"of-{members}"


async def _measure(servers: str, figures: Figures, count: int) -> None:
    topic, partition_count = topic_of(count), count * PARTITIONS_OF_MEMBER
    connections = [await _coordinated(servers) for _ in range(count)]
    members = [ConsumerMember(connection, topic) for connection in connections]
    await until_coordinated(members[0].ask)
    began = time.perf_counter()
    await settle(members, partition_count)
    figures.add(FORMED, count, time.perf_counter() - began)
    late = ConsumerMember(await _coordinated(servers), topic)
    began = time.perf_counter()
    members.append(late)
    await settle(members, partition_count)
    figures.add(ONE_MORE, count, time.perf_counter() - began)
    figures.add(BEATS, count, await _rate(members, ConsumerMember.beat, BEATS_OF_MEMBER))
    figures.add(COMMITS, count, await _rate(members, ConsumerMember.commit, COMMITS_OF_MEMBER))
    classics = [ClassicMember(connection) for connection in connections]
    await asyncio.gather(*(member.join(count) for member in classics))
    began = time.perf_counter()
    leader = next(member for member in classics if member.is_leader)
    others = [member for member in classics if member is not leader]
    await asyncio.gather(leader.join(count), *(other.follow(count) for other in others))
    figures.add(CLASSIC_REBALANCE, count, time.perf_counter() - began)
    figures.add(CLASSIC_BEATS, count, await _rate(classics, ClassicMember.beat, BEATS_OF_MEMBER))
    for member in members:
        member.connection.close()


async def _rate(
    members: Sequence[Member], ask: Callable[[Member], Awaitable[None]], times: int
) -> float:
    """Have each member ask so many times, one request after the other; return all in a second."""

    async def often(member: Member) -> None:
        for _ in range(times):
            await ask(member)

    began = time.perf_counter()
    await asyncio.gather(*(often(member) for member in members))
    return len(members) * times / (time.perf_counter() - began)


async def _coordinated(servers: str) -> Connection:
    """Return a connection to the broker, once it coordinates the group."""
    connection = await Connection.to(servers)

    async def find() -> int:
        request = FindCoordinatorRequest(GROUP)
        return (await connection.ask(request, FindCoordinatorResponse, _FIND_VERSION)).error_code

    await until_coordinated(find)
    return connection


class ConsumerMember:
    """A member by the consumer protocol, which gives up at once what it has to give up."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection = connection
        self.epoch = JOIN_EPOCH
        self.owned: dict[bytes, list[int]] = {}
        self._topic = topic
        self._member_id = str(uuid4())
        self._has_news = True

    @property
    def partition_count(self) -> int:
        return sum(map(len, self.owned.values()))

    async def beat(self) -> None:
        """Send a heartbeat, with what the member owns if that is new."""
        check(await self.ask())

    async def ask(self) -> int:
        """Do the same, and return the error."""
        is_first = self.epoch == JOIN_EPOCH
        owned = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id, partitions)
            for topic_id, partitions in self.owned.items()
        ]
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=SESSION_MS if is_first else -1,
            subscribed_topic_names=[self._topic] if is_first else None,
            topic_partitions=owned if self._has_news else None,
        )
        response = await self.connection.ask(request, ConsumerGroupHeartbeatResponse, _BEAT_VERSION)
        if response.error_code != ErrorCode.NONE:
            return response.error_code
        self.epoch = response.member_epoch
        self._has_news = response.assignment is not None
        if response.assignment is not None:
            self.owned = {
                one.topic_id: list(one.partitions) for one in response.assignment.topic_partitions
            }
        return response.error_code

    async def commit(self) -> None:
        """Commit an offset at the member's epoch."""
        topic = OffsetCommitRequestTopic(
            self._topic, partitions=[OffsetCommitRequestPartition(0, 7)]
        )
        request = OffsetCommitRequest(GROUP, self.epoch, self._member_id, topics=[topic])
        response = await self.connection.ask(request, OffsetCommitResponse, _COMMIT_VERSION)
        check(response.topics[0].partitions[0].error_code)


async def settle(members: Sequence[ConsumerMember], partition_count: int) -> None:
    """Have all members send heartbeats until they have all partitions, at one epoch."""
    async with asyncio.timeout(SETTLED_S_MAX):
        while True:
            await asyncio.gather(*(member.beat() for member in members))
            counts = [member.partition_count for member in members]
            is_even = max(counts) - min(counts) <= 1
            has_one_epoch = len({member.epoch for member in members}) == 1
            if is_even and has_one_epoch and sum(counts) == partition_count:
                return


class ClassicMember:
    """A member by the classic protocol."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_leader = False
        self._member_id = ""
        self._generation = -1

    async def join(self, count: int) -> None:
        """Join until the group has all its members, and take the assignment of that generation."""
        request = JoinGroupRequest(
            CLASSIC_GROUP,
            SESSION_MS,
            SESSION_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )
        joined = await self.connection.ask(request, JoinGroupResponse, _JOIN_VERSION)
        check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        self.is_leader = joined.leader == joined.member_id
        if self.is_leader and len(joined.members) != count:
            raise AssertionError(f"{len(joined.members)} members of {count} have joined")
        assignments = [
            SyncGroupRequestAssignment(one.member_id, b"a share") for one in joined.members
        ]
        sync = SyncGroupRequest(
            CLASSIC_GROUP, self._generation, self._member_id, assignments=assignments
        )
        check((await self.connection.ask(sync, SyncGroupResponse, _SYNC_VERSION)).error_code)

    async def follow(self, count: int) -> None:
        """Send heartbeats until one is answered with a rebalance; then join it."""
        while await self._beat() == ErrorCode.NONE:
            pass
        await self.join(count)

    async def beat(self) -> None:
        """Send a heartbeat."""
        check(await self._beat())

    async def _beat(self) -> int:
        request = HeartbeatRequest(CLASSIC_GROUP, self._generation, self._member_id)
        answer = await self.connection.ask(request, HeartbeatResponse, _CLASSIC_BEAT_VERSION)
        return answer.error_code
