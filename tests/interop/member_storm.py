"""Members of a consumer group that are killed, paused and sent away, as brokers are killed.

`python -m tests.interop.member_storm --minutes 10 --ours 11,12,13` does for long, and with some
real brokers if wanted, what the test does for a short while. The members are librdkafka's, of the
consumer protocol (KIP-848).
"""

import argparse
import bisect
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, Final, Self

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from tests.interop.broker_cluster import BrokerCluster
from tests.interop.traffic import Flaws, Writer, flaws_of
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind
from tests.support.waiting import PATIENCE_S, Threads, wait_for

EVERYBODY: Final = frozenset({11, 12, 13})
TOPIC: Final = "stormy"
GROUP: Final = "stormy-members"
PARTITIONS: Final = 6
MEMBERS: Final = 8
SESSION_S: Final = 6.0
SETTINGS: Final = {
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
KILLS: Final = "kills"
PAUSES: Final = "pauses"
LEAVES: Final = "leaves"
KILLS_OF_BROKERS: Final = "kills of brokers"
BLOWS: Final = (KILLS, PAUSES, LEAVES, KILLS_OF_BROKERS)
PAUSED_S: Final = (0.5, 1.5 * SESSION_S)
"""Some pauses are shorter than a session, and some are longer."""
AWAY_S: Final = (0.1, 3.0)
_BETWEEN_BLOWS_S: Final = (0.2, 1.2)
_BETWEEN_KILLS_S: Final = (8.0, 20.0)
_DOWN_S: Final = (0.2, 2.0)
CALL_TIMEOUT_S: Final = 10.0
Span = tuple[int, int]


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


class MemberProcess:
    """A member that begins again whenever it has ended, until it is closed."""

    def __init__(self, servers: str, story: Story) -> None:
        self._servers = servers
        self._story = story
        self._threads = Threads()
        self._process = self._start()

    def kill(self, away_s: float) -> None:
        """End the process as a crash does, and begin again after a while."""
        self._begin_again(away_s)

    def leave(self, away_s: float) -> None:
        """Have the member leave, and come back after a while."""
        self._end_input()
        self._process.wait(PATIENCE_S)
        self._begin_again(away_s)

    def pause(self, seconds: float) -> None:
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._end_input()
        self._threads.join()

    def _begin_again(self, away_s: float) -> None:
        self.close()
        time.sleep(away_s)
        self._process = self._start()

    def _end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.group_member", self._servers, GROUP, TOPIC],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._threads = Threads()
        self._threads.start(lambda: self._listen(process))
        return process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._story.add(line)


class Describer:
    """Looks at the group all the while; use as a context."""

    def __init__(self, servers: str) -> None:
        self._admin: Any = AdminClient({"bootstrap.servers": servers, "log_level": 0})
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

    def look(self) -> Any:
        """Return the ConsumerGroupDescription of the group; None while no coordinator answers."""
        (future,) = self._admin.describe_consumer_groups(
            [GROUP], request_timeout=CALL_TIMEOUT_S
        ).values()
        try:
            return future.result(CALL_TIMEOUT_S)
        except (KafkaException, TimeoutError):
            return None

    def is_settled(self) -> bool:
        """Return whether every member has its target, and each partition a member."""
        found = self.look()
        if found is None or found.state is not ConsumerGroupState.STABLE:
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


def owned(group: Any) -> list[int]:
    """Return the partitions that members have, once for each of them."""
    return [one.partition for member in group.members for one in member.assignment.topic_partitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFigures:
    """Count what happened in a storm, and what was wrong after it."""

    blows: Mapping[str, int]
    takeovers: int
    commits: int
    read: int
    records: int
    looks: int
    flaws: Sequence[str]

    def __str__(self) -> str:
        blows = ", ".join(f"{self.blows[what]} {what}" for what in BLOWS)
        return (
            f"{blows}; {self.records:,} records, {self.read - self.records:,} read again; "
            f"{self.takeovers} partitions taken over, {self.commits:,} commits acknowledged, "
            f"{self.looks:,} looks at the group: {len(self.flaws)} flaws"
        )


@contextmanager
def stormy_cluster(kind: Kind, folder: Path, **options: Any) -> Generator[BrokerCluster]:
    """Run three brokers on one controller, with BrokerCluster's options; they have the topic."""
    made = BrokerCluster(kind, folder, brokers=len(EVERYBODY), settings=SETTINGS, **options)
    with made.running() as cluster:
        words = f"--create --topic {TOPIC} --partitions {PARTITIONS} --replication-factor 3"
        cluster.tool("kafka-topics", *words.split())
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        yield cluster


def storm(
    cluster: BrokerCluster, random: Random, *, seconds: float, blows_min: int
) -> MemberFigures:
    """Strike members, and kill brokers, for so long and so often; then count what is wrong.

    The cluster has the topic, and nothing in it yet. In the end the group has to have read and
    committed everything, and every member has to have its target.
    """
    story = Story()
    blows: Counter[str] = Counter()
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(MemberProcess(cluster.servers, story)))
            for _ in range(MEMBERS)
        ]
        describer = stack.enter_context(Describer(cluster.servers))
        with ExitStack() as writing:
            writers = [
                writing.enter_context(Writer(cluster.servers, TOPIC, partition=partition))
                for partition in range(PARTITIONS)
            ]
            wait_for(lambda: story.counts[2] > 0, "the group reads")
            end = time.monotonic() + seconds
            strikes = Threads()
            for one in members:
                own = Random(random.random())
                strikes.start(partial(_strike, one, own, end, blows, blows_min))
            _kill_brokers(cluster, random, end, blows)
            strikes.join()
            cluster.wait_for_brokers(*EVERYBODY)
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
        blows=blows,
        takeovers=takeovers,
        commits=commits,
        read=read,
        records=sum(sent.values()),
        looks=describer.look_count,
        flaws=[*story.lost_commits(), *describer.flaws, *([] if logs == Flaws() else [str(logs)])],
    )


def _is_done(story: Story, partition: int, count: int) -> bool:
    return story.end_of_read(partition) == story.end_of_commits(partition) == count


def _strike(
    member: MemberProcess, random: Random, end: float, blows: Counter[str], blows_min: int
) -> None:
    """Strike one member again and again."""
    while time.monotonic() < end or blows.total() < blows_min:
        time.sleep(MEMBERS * random.uniform(*_BETWEEN_BLOWS_S))
        blow = random.choice((KILLS, PAUSES, LEAVES))
        if blow == KILLS:
            member.kill(random.uniform(*AWAY_S))
        elif blow == PAUSES:
            member.pause(random.uniform(*PAUSED_S))
        else:
            member.leave(random.uniform(*AWAY_S))
        blows[blow] += 1


def _kill_brokers(cluster: BrokerCluster, random: Random, end: float, blows: Counter[str]) -> None:
    """Kill a broker now and then; the next one whether or not this one has caught up by then."""
    while True:
        victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
        victim.kill()
        time.sleep(random.uniform(*_DOWN_S))
        victim.start()
        blows[KILLS_OF_BROKERS] += 1
        if time.monotonic() > end:
            return
        time.sleep(random.uniform(*_BETWEEN_KILLS_S))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--ours", default="11,12,13", help="which of 11, 12, 13 are kvorum's")
    parser.add_argument("--controllers", choices=("kvorum", "kafka"), default="kvorum")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ours: Collection[int] = [int(node_id) for node_id in arguments.ours.split(",") if node_id]
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    folder = Path(mkdtemp(prefix="member-storm-"))
    sys.stdout.write(f"the brokers' files are in {folder}, and stay there after a failure\n")
    with (
        ToolRunner(java) as tools,
        stormy_cluster(arguments.controllers, folder, java=java, tools=tools, ours=ours) as cluster,
    ):
        figures = storm(
            cluster, Random(arguments.seed), seconds=arguments.minutes * 60, blows_min=2
        )
    sys.stdout.write(f"{figures}\n")
    if figures.flaws:
        sys.stdout.write("\n".join(figures.flaws[:20]) + "\n")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
