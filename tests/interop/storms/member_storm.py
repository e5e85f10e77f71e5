"""Members of a consumer group that are struck in all ways while brokers are killed.

`python -m tests.interop.storms.member_storm --minutes 10 --ours 11,12,13` does for long, and with
some real brokers if wanted, what the test does for a short while. The members are librdkafka's, of
the consumer protocol (KIP-848).
"""

import bisect
import json
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, Final, Self

from tests.interop.broker_cluster import BrokerCluster
from tests.interop.storms.proxied_cluster import ProxiedCluster, proxied_cluster
from tests.interop.storms.storm_command import EVERYBODY, StormRun, run_storm, storm_parser
from tests.interop.storms.struck_member import SESSION_S, Strikes, StruckMember
from tests.interop.traffic import Flaws, Writer, flaws_of
from tests.support.node import Kind
from tests.support.raw_client import RawClient
from tests.support.waiting import Threads, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

TOPIC: Final = "stormy"
GROUP: Final = "stormy-members"
PARTITIONS: Final = 6
MEMBERS: Final = 8
SESSION_MS: Final = str(int(SESSION_S * 1000))
SETTINGS: Final = {
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
FIRST_NUMBER: Final = 101
"""The client id of the first member."""
Span = tuple[int, int]
DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup


@dataclass
class Story:
    """All that members have said, in the order of the lines of each."""

    taken: list[tuple[float, int, int]] = field(default_factory=list[tuple[float, int, int]])
    """When a member asked for the offset of a partition that it got, and the answer."""
    read: dict[int, list[Span]] = field(default_factory=dict[int, list[Span]])
    committed: dict[int, list[tuple[float, int]]] = field(
        default_factory=dict[int, list[tuple[float, int]]]
    )
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, line: str) -> None:
        """Take a line of a member; one that was cut off by its end says nothing."""
        try:
            said = json.loads(line)
        except ValueError:
            return
        at: float = said["at"]
        with self.lock:
            for partition, offset in said.get("taken", {}).items():
                self.taken.append((at, int(partition), offset))
            for partition, (first, last) in said.get("read", {}).items():
                self.read.setdefault(int(partition), []).append((first, last))
            for partition, offset in said.get("committed", {}).items():
                self.committed.setdefault(int(partition), []).append((at, offset))

    def lost_commits(self) -> list[str]:
        """Return the takeovers at an offset below one that was acknowledged before."""
        flaws: list[str] = []
        with self.lock:
            for partition, commits in self.committed.items():
                commits.sort()
                times = [at for at, _ in commits]
                highest = list(accumulate((offset for _, offset in commits), max))
                for at, where, offset in self.taken:
                    before = bisect.bisect_left(times, at)
                    if where == partition and before and offset < highest[before - 1]:
                        flaws.append(f"{partition}: taken at {offset}, {highest[before - 1]} known")
        return flaws

    def end_of_read(self, partition: int) -> int:
        """Return up to which offset all records of a partition were read."""
        with self.lock:
            end = 0
            for first, last in sorted(self.read.get(partition, ())):
                if first > end:
                    break
                end = max(end, last + 1)
            return end

    def end_of_commits(self, partition: int) -> int:
        with self.lock:
            return max((offset for _, offset in self.committed.get(partition, ())), default=0)

    @property
    def counts(self) -> tuple[int, int, int]:
        """The takeovers, the acknowledged commits, and the records that were read."""
        with self.lock:
            commits = sum(map(len, self.committed.values()))
            records = sum(last - first + 1 for some in self.read.values() for first, last in some)
            return len(self.taken), commits, records


class Describer:
    """Looks at the group all the while; use as a context."""

    def __init__(self, cluster: BrokerCluster) -> None:
        self._cluster = cluster
        self._is_over = threading.Event()
        self._threads = Threads()
        self.look_count = 0
        self.flaws: list[str] = []

    def __enter__(self) -> Self:
        self._threads.start(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.join()

    def look(self) -> DescribedGroup | None:
        """Return the group as its coordinator describes it; None while none does."""
        request = ConsumerGroupDescribeRequest([GROUP])
        for broker in self._cluster.brokers.values():
            # It may be down, or end before it has answered.
            with suppress(OSError, AssertionError), RawClient(broker.address) as client:
                (group,) = client.ask(request, ConsumerGroupDescribeResponse, 1).groups
                if group.error_code == ErrorCode.NONE:
                    return group
        return None

    def is_settled(self) -> bool:
        """Return whether every member has its target, and each partition a member."""
        found = self.look()
        if found is None or found.group_state != "Stable":
            return False
        return sorted(owned(found)) == list(range(PARTITIONS)) and len(found.members) == MEMBERS

    def _run(self) -> None:
        while not self._is_over.wait(0.1):
            found = self.look()
            if found is None:
                continue
            self.look_count += 1
            self.flaws += [
                f"partition {one} has {count} members"
                for one, count in Counter(owned(found)).items()
                if count > 1
            ]


def owned(group: DescribedGroup) -> list[int]:
    """Return the partitions that members have, once for each of them."""
    return [
        partition
        for member in group.members
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFigures:
    """Count what happened in a storm, and what was wrong after it."""

    strikes: Strikes
    takeovers: int
    commits: int
    read: int
    records: int
    looks: int
    flaws: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.strikes}; {self.records:,} records, {self.read - self.records:,} read again; "
            f"{self.takeovers} partitions taken over, {self.commits:,} commits acknowledged, "
            f"{self.looks:,} looks at the group: {len(self.flaws)} flaws"
        )


def stormy_cluster(
    kind: Kind, folder: Path, **options: Any
) -> AbstractContextManager[ProxiedCluster]:
    """Run three brokers on one controller, with BrokerCluster's options; they have the topic."""
    return proxied_cluster(kind, folder, SETTINGS, TOPIC, PARTITIONS, **options)


def storm(
    proxied: ProxiedCluster, random: Random, *, seconds: float, blows_min: int
) -> MemberFigures:
    """Strike members, and kill brokers, for so long and so often; then count what is wrong.

    The cluster has the topic, and nothing in it yet. In the end the group has to have read and
    committed everything, and every member has to have its target.
    """
    story = Story()
    cluster = proxied.cluster
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(_new_member(proxied, number, story)))
            for number in range(FIRST_NUMBER, FIRST_NUMBER + MEMBERS)
        ]
        describer = stack.enter_context(Describer(cluster))
        with ExitStack() as writing:
            writers = [
                writing.enter_context(Writer(cluster.servers, TOPIC, partition=partition))
                for partition in range(PARTITIONS)
            ]
            wait_for(lambda: story.counts[2] > 0, "the group reads")
            strikes = Strikes(cluster, members, seconds=seconds, blows_min=blows_min)
            strikes.run(random)
        sent = {writer.partition: writer.sent for writer in writers}
        wait_for(
            lambda: all(_is_done(story, partition, count) for partition, count in sent.items()),
            "everything is read and committed",
            otherwise=lambda: {
                partition: (count, story.end_of_read(partition), story.end_of_commits(partition))
                for partition, count in sent.items()
            },
        )
        wait_for(describer.is_settled, "every member has its target", otherwise=describer.look)
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        logs = sum((flaws_of(cluster, writer, EVERYBODY) for writer in writers), Flaws())
    takeovers, commits, read = story.counts
    return MemberFigures(
        strikes=strikes,
        takeovers=takeovers,
        commits=commits,
        read=read,
        records=sum(sent.values()),
        looks=describer.look_count,
        flaws=[*story.lost_commits(), *describer.flaws, *([] if logs == Flaws() else [str(logs)])],
    )


def _new_member(proxied: ProxiedCluster, number: int, story: Story) -> StruckMember:
    words = [proxied.servers, GROUP, TOPIC, str(number)]
    command = [sys.executable, "-m", "tests.interop.storms.group_member", *words]
    return StruckMember(command, number, proxied.network, story.add)


def _is_done(story: Story, partition: int, count: int) -> bool:
    return story.end_of_read(partition) == story.end_of_commits(partition) == count


def _pass_over(run: StormRun) -> tuple[MemberFigures, Sequence[str]]:
    with stormy_cluster(
        run.controllers, run.folder, java=run.java, tools=run.tools, ours=run.ours
    ) as proxied:
        figures = storm(proxied, run.random, seconds=run.seconds, blows_min=2)
    return figures, figures.flaws


if __name__ == "__main__":
    run_storm(storm_parser(__doc__), _pass_over)
