"""A broker with many groups of one member, each on a connection of its own."""

import asyncio
import statistics
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.data.asking import Connection, check, until_coordinated
from benchmarks.data.brokers import RunningBroker, broker
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row

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
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUPS: Final = (100, 1_000)
ROUNDS: Final = 3
COMMITS_OF_GROUP: Final = 20
TOPIC: Final = "of-many"
SESSION_MS: Final = 45_000
NO_DELAY: Final = {"group.initial.rebalance.delay.ms": "0"}
_JOIN_VERSION: Final = 3
"""Members of this version are let in at once, without a second request for their id."""
_SYNC_VERSION: Final = 2
_COMMIT_VERSION: Final = 7
_FIND_VERSION: Final = 3


@dataclass
class Figures:
    """The figures of one candidate, for each number of groups one for each round."""

    formed_s: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    commits_per_s: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of groups are divided."""
    groups = [max(1, count // divisor) for count in GROUPS]
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with _started(candidate) as running:
                asyncio.run(_measure(running.servers, figures, groups))
    (_, ours), (peer, theirs) = candidates
    found: list[Row] = []
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


async def _measure(servers: str, figures: Figures, groups: Sequence[int]) -> None:
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
            check(response.topics[0].partitions[0].error_code)


async def _form(servers: str, names: Sequence[str]) -> list[Member]:
    """Connect to the broker once for each group, and have each group formed."""
    return await asyncio.gather(*(_join(servers, name) for name in names))


async def _join(servers: str, group: str) -> Member:
    connection = await Connection.to(servers)

    async def find() -> int:
        request = FindCoordinatorRequest(group)
        return (await connection.ask(request, FindCoordinatorResponse, _FIND_VERSION)).error_code

    await until_coordinated(find)
    protocols = [JoinGroupRequestProtocol("range", b"")]
    request = JoinGroupRequest(
        group, SESSION_MS, SESSION_MS, protocol_type="consumer", protocols=protocols
    )
    joined = JoinGroupResponse()

    async def join() -> int:
        nonlocal joined
        joined = await connection.ask(request, JoinGroupResponse, _JOIN_VERSION)
        return joined.error_code

    await until_coordinated(join)
    assignment = SyncGroupRequestAssignment(joined.member_id, b"everything")
    sync = SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=[assignment])
    check((await connection.ask(sync, SyncGroupResponse, _SYNC_VERSION)).error_code)
    return Member(connection, group, joined.member_id, joined.generation_id)
