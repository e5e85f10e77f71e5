"""Members of a share group that are struck in all ways while brokers are killed.

`python -m tests.interop.storms.share_storm --minutes 10 --ours 11,12,13` does for long, and with
some real brokers if wanted, what the test does for a short while. The members are Java's (KIP-932).
"""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.interop.broker_cluster import BrokerCluster
from tests.interop.storms.proxied_cluster import ProxiedCluster, proxied_cluster
from tests.interop.storms.storm_command import EVERYBODY, StormRun, run_storm, storm_parser
from tests.interop.storms.struck_member import SESSION_S, Strikes, StruckMember
from tests.interop.traffic import Flaws, Writer, flaws_of
from tests.support.kafka.java import Java
from tests.support.node import Kind
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)

TOPIC: Final = "stormy"
GROUP: Final = "stormy-share"
PARTITIONS: Final = 3
PROCESSES: Final = 4
MEMBERS_OF_ONE: Final = 2
FIRST_NUMBER: Final = 101
"""The client id of the first process."""
SESSION_MS: Final = str(int(SESSION_S * 1000))
SETTINGS: Final = {
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.share.session.timeout.ms": SESSION_MS,
    "group.share.min.session.timeout.ms": SESSION_MS,
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.min.record.lock.duration.ms": "1000",
    # Nothing may be given up because its members were struck.
    "group.share.delivery.count.limit": "10",
}
RELEASE: Final = "release"
Place = tuple[int, int]
"""A partition and an offset."""


class Word(NamedTuple):
    """A word of a member on a record that was not refused; times are nanoseconds."""

    start: int
    """When the member's process began."""
    end: int
    """When the word was answered."""
    type: str
    deliveries: int

    @property
    def is_final(self) -> bool:
        """Whether the record is done with."""
        return self.type != RELEASE


@dataclass
class ShareStory:
    """All that members have said, and what they were refused.

    A member may have had a record for long before it speaks of it, and a word on what lies before
    a group's start is not refused. So a member tells of what was decided later than its word only
    if its process began after that.
    """

    got: dict[Place, int] = field(default_factory=dict[Place, int])
    """The begin of the latest process that had a record."""
    words: dict[Place, list[Word]] = field(default_factory=dict[Place, list[Word]])
    refused: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, line: str) -> None:
        """Take a line of a member; one that was cut off by its end says nothing."""
        if not line.endswith("\n"):
            return
        kind, _, rest = line.strip().partition(" ")
        with self.lock:
            if kind == "got":
                self._add_records(rest)
            elif kind == "said":
                self._add_words(rest)
            else:
                self.refused.append(rest)

    def _add_records(self, text: str) -> None:
        start, partition, *offsets = map(int, text.split())
        for offset in offsets:
            place = partition, offset
            self.got[place] = max(self.got.get(place, start), start)

    def _add_words(self, text: str) -> None:
        start, end, partition, *words = text.split()
        for word in words:
            type_, offset, deliveries = word.split(":")
            said = Word(int(start), int(end), type_, int(deliveries))
            self.words.setdefault((int(partition), int(offset)), []).append(said)

    def flaws(self) -> list[str]:
        """Return what no share group may do."""
        with self.lock:
            return [
                f"{place}: {flaw} in {words}"
                for place, words in self.words.items()
                if (flaw := self._flaw(place, words))
            ]

    def _flaw(self, place: Place, words: Sequence[Word]) -> str | None:
        for word in words:
            if word.is_final and self.got[place] > word.end:
                return "given out after it was done with"
            if any(
                other.start > word.end and other.deliveries <= word.deliveries for other in words
            ):
                return "deliveries that do not rise"
        return None

    @property
    def word_count(self) -> int:
        """The number of words that were not refused."""
        with self.lock:
            return sum(map(len, self.words.values()))

    def has_read(self, partition: int, count: int) -> bool:
        """Return whether each of the first records of a partition was delivered to a member."""
        with self.lock:
            return all((partition, offset) in self.got for offset in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFigures:
    """Count what happened in a storm, and what was wrong after it."""

    strikes: Strikes
    records: int
    words: int
    refused: int
    flaws: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.strikes}; {self.records:,} records, {self.words:,} words on them acknowledged, "
            f"{self.refused:,} refusals: {len(self.flaws)} flaws"
        )


def stormy_cluster(
    kind: Kind, folder: Path, **options: Any
) -> AbstractContextManager[ProxiedCluster]:
    """Run three brokers on one controller, with BrokerCluster's options; they have the topic."""
    return proxied_cluster(kind, folder, SETTINGS, TOPIC, PARTITIONS, **options)


def storm(
    proxied: ProxiedCluster, java: Java, random: Random, *, seconds: float, blows_min: int
) -> ShareFigures:
    """Strike members, and kill brokers, for so long and so often; then count what is wrong.

    The cluster has the topic, and nothing in it yet. In the end everything has to be delivered and
    done with.
    """
    story = ShareStory()
    cluster = proxied.cluster
    group = ("--entity-type", "groups", "--entity-name", GROUP)
    begin = "share.auto.offset.reset=earliest"
    cluster.tool("kafka-configs", "--alter", *group, "--add-config", begin)
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(_new_member(proxied, java, number, story)))
            for number in range(FIRST_NUMBER, FIRST_NUMBER + PROCESSES)
        ]
        with ExitStack() as writing:
            writers = [
                writing.enter_context(Writer(cluster.servers, TOPIC, partition=partition))
                for partition in range(PARTITIONS)
            ]
            wait_for(lambda: story.word_count > 0, "the group reads")
            strikes = Strikes(cluster, members, seconds=seconds, blows_min=blows_min)
            strikes.run(random)
        sent = {writer.partition: writer.sent for writer in writers}
        wait_for(
            lambda: lags(cluster) == dict.fromkeys(range(PARTITIONS), 0),
            "everything is done with",
            otherwise=lambda: lags(cluster),
        )
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        logs = sum((flaws_of(cluster, writer, EVERYBODY) for writer in writers), Flaws())
    unread = [
        f"some of the {count} records of partition {partition} were never delivered"
        for partition, count in sent.items()
        if not story.has_read(partition, count)
    ]
    return ShareFigures(
        strikes=strikes,
        records=sum(sent.values()),
        words=story.word_count,
        refused=len(story.refused),
        flaws=[*story.flaws(), *unread, *([] if logs == Flaws() else [str(logs)])],
    )


def lags(cluster: BrokerCluster) -> dict[int, int]:
    """Return how many records of each partition are not done with; none while no broker says."""
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(GROUP, None)])
    for broker in cluster.brokers.values():
        # It may be down, or no coordinator of the group.
        with suppress(OSError, AssertionError), RawClient(broker.address) as client:
            (found,) = client.ask(request, DescribeShareGroupOffsetsResponse, 1).groups
            for topic in found.topics:
                return {one.partition_index: one.lag for one in topic.partitions}
    return {}


def _new_member(
    proxied: ProxiedCluster, java: Java, number: int, story: ShareStory
) -> StruckMember:
    words = (proxied.servers, GROUP, TOPIC, str(number), str(MEMBERS_OF_ONE))
    command = java.program("StruckShareMember", *words)
    return StruckMember(command, number, proxied.network, story.add)


def _pass_over(run: StormRun) -> tuple[ShareFigures, Sequence[str]]:
    with stormy_cluster(
        run.controllers, run.folder, java=run.java, tools=run.tools, ours=run.ours
    ) as proxied:
        figures = storm(proxied, run.java, run.random, seconds=run.seconds, blows_min=2)
    return figures, figures.flaws


if __name__ == "__main__":
    run_storm(storm_parser(__doc__), _pass_over)
