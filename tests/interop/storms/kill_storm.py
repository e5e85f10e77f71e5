"""Brokers that are killed at random, beneath idempotent producers and a group of consumers.

`python -m tests.interop.storms.kill_storm --minutes 10 --ours 11,12` does for long, and with some
real brokers if wanted, what the tests do for a short while. With `--disks` the disks of ours are
slow, and full now and then.
"""

import threading
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from tests.interop.broker_cluster import BrokerCluster, OlderBrokers
from tests.interop.storms.storm_command import EVERYBODY, StormRun, run_storm, storm_parser
from tests.interop.traffic import Flaws, Writer, flaws_of
from tests.support.kafka.fetch_jars import JARS_ROOT, OLDEST_NODE
from tests.support.kafka.java import Java
from tests.support.node import Kind
from tests.support.troubled_disks import full_mark
from tests.support.waiting import PATIENCE_S, Threads, wait_for

POLL_S: Final = 0.2
BATCH_MAX: Final = 500


class CommittingGroup:
    """Members that read a topic whose values are their own offsets; use as a context.

    `lost_commits` lists partitions that a member took over at an offset below one whose commit
    had been acknowledged before, and of records that were not what their offsets say.
    """

    def __init__(self, servers: str, topic: str, group: str, *, members: int) -> None:
        self.commits = 0
        self.takeovers = 0
        self.doubled = 0
        self.lost_commits: list[str] = []
        self._topic = topic
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }
        self._lock = threading.Lock()
        self._acknowledged: Counter[int] = Counter()
        self._seen: dict[int, set[int]] = {}
        self._is_over = threading.Event()
        self._members = members
        self._threads = Threads()

    def __enter__(self) -> Self:
        for _ in range(self._members):
            self._threads.start(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.join()

    def wait_for(self, counts: Mapping[int, int]) -> None:
        """Wait until so many records of each partition are read, and committed."""

        def missing() -> dict[int, tuple[int, int]]:
            with self._lock:
                return {
                    partition: (len(self._seen.get(partition, ())), self._acknowledged[partition])
                    for partition, count in counts.items()
                    if not len(self._seen.get(partition, ()))
                    == count
                    == self._acknowledged[partition]
                }

        wait_for(
            lambda: not missing(),
            f"the group has read and committed {counts}",
            otherwise=lambda: f"it has read and committed too little: {missing()}",
        )

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic], on_assign=self._take_over)
        while not self._is_over.is_set():
            messages = consumer.consume(BATCH_MAX, POLL_S)
            self._note([message for message in messages if message.error() is None])
            if messages:
                self._commit(consumer)
        consumer.close()

    def _take_over(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._lock:
            before = {one.partition: self._acknowledged[one.partition] for one in partitions}
        try:
            found = consumer.committed(partitions, PATIENCE_S / 3)
        except KafkaException:
            return  # The coordinator is down; the assignment fails, and there will be another one.
        with self._lock:
            self.takeovers += len(partitions)
            self.lost_commits += [
                f"partition {one.partition}: taken over at {one.offset}, {known} was committed"
                for one in found
                # None at all is a negative offset.
                if one.error is None and max(one.offset, 0) < (known := before[one.partition])
            ]

    def _note(self, messages: list[Message]) -> None:
        with self._lock:
            for message in messages:
                partition, offset = message.partition() or 0, message.offset() or 0
                seen = self._seen.setdefault(partition, set())
                self.doubled += offset in seen
                seen.add(offset)
                if message.value() != str(offset).encode():
                    self.lost_commits.append(f"{partition}, {offset}: {message.value()!r}")

    def _commit(self, consumer: Consumer) -> None:
        try:
            stored = consumer.commit(asynchronous=False) or []
        except KafkaException:
            return  # The group rebalances, or its coordinator moves: nothing was acknowledged.
        with self._lock:
            for one in stored:
                if one.error is None and one.offset >= 0:
                    self.commits += 1
                    known = self._acknowledged[one.partition]
                    self._acknowledged[one.partition] = max(known, one.offset)


PARTITIONS: Final = 3
MEMBERS: Final = 3
TOPIC: Final = "stormy"
GROUP: Final = "storm-watchers"
# The metadata.version that brokers of OLDEST_NODE can follow.
OLDER_VERSION: Final = "3.9"
# A commit, too, may only count as stored where one broker more has it.
THREE_REPLICAS: Final = {"offsets.topic.replication.factor": "3", "min.insync.replicas": "2"}
NO_SPACE: Final = "No space left on device"
_PAUSE_S: Final = (1.0, 6.0)
_DOWN_S: Final = (0.2, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StormFigures:
    """Count what happened in a storm, and the flaws of all logs together after it."""

    kills: int
    full_disks: int
    acknowledged: int
    flaws: Flaws
    commits: int
    takeovers: int
    read_again: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.full_disks} full disks; "
            f"{self.acknowledged:,} records acknowledged: "
            f"{self.flaws.lost} lost, {self.flaws.doubled} doubled, "
            f"{self.flaws.reordered} reordered; {self.takeovers} partitions taken over, "
            f"{self.commits} commits acknowledged, {self.read_again:,} records read again"
        )


@contextmanager
def stormy_cluster(kind: Kind, folder: Path, **options: Any) -> Generator[BrokerCluster]:
    """Run three brokers on one controller, with BrokerCluster's options; they have the topic."""
    brokers = len(EVERYBODY)
    made = BrokerCluster(kind, folder, brokers=brokers, settings=THREE_REPLICAS, **options)
    with made.running() as cluster:
        cluster.tool(
            "kafka-topics",
            "--create",
            "--topic",
            TOPIC,
            "--partitions",
            str(PARTITIONS),
            "--replication-factor",
            "3",
            "--config",
            "segment.bytes=1048576",
        )
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        yield cluster


def storm(
    cluster: BrokerCluster, random: Random, *, seconds: float, blows_min: int, fills_disks: bool
) -> StormFigures:
    """Kill brokers for so long and so often, then count what was lost, doubled or reordered.

    With `fills_disks` every other blow is a full disk, and every other of those is that of a
    leader. The group has to read and commit everything, and may lose no commit. The cluster has
    the topic, and nothing in it yet.
    """
    kills = full_disks = 0
    with CommittingGroup(cluster.servers, TOPIC, GROUP, members=MEMBERS) as group:
        with ExitStack() as stack:
            writers = [
                stack.enter_context(Writer(cluster.servers, TOPIC, partition=partition))
                for partition in range(PARTITIONS)
            ]
            for writer in writers:
                writer.wait_for_acknowledged(100)
            end = time.monotonic() + seconds
            while time.monotonic() < end or kills + full_disks < blows_min:
                time.sleep(random.uniform(*_PAUSE_S))
                if fills_disks and full_disks < kills:
                    _fill_a_disk(cluster, random, of_leader=full_disks % 2 == 0)
                    full_disks += 1
                else:
                    _kill_one(cluster, random)
                    kills += 1
            cluster.wait_for_brokers(*EVERYBODY)
            for writer in writers:
                writer.wait_for_acknowledged(100)
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        flaws = sum((flaws_of(cluster, writer, EVERYBODY) for writer in writers), Flaws())
        group.wait_for({writer.partition: writer.sent for writer in writers})
    assert group.lost_commits == [], group.lost_commits[:10]
    return StormFigures(
        kills=kills,
        full_disks=full_disks,
        acknowledged=sum(len(writer.acknowledged) for writer in writers),
        flaws=flaws,
        commits=group.commits,
        takeovers=group.takeovers,
        read_again=group.doubled,
    )


def _kill_one(cluster: BrokerCluster, random: Random) -> None:
    """The next is killed whether or not this one has caught up by then."""
    victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
    victim.kill()
    time.sleep(random.uniform(*_DOWN_S))
    victim.start()


def _fill_a_disk(cluster: BrokerCluster, random: Random, *, of_leader: bool) -> None:
    """Fill a disk that has a replica until its broker says so, and start that when there is room.

    Without the directory of its metadata log it ends; without the other it goes on until then.
    """
    partition = random.randrange(PARTITIONS)
    if of_leader:
        found = cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY))
        victim = cluster.brokers[found[partition].leader]
    else:
        victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
    (replica,) = victim.folder.glob(f"*/{TOPIC}-{partition}")
    directory = replica.parent
    mark = full_mark(directory)
    mark.touch()
    try:
        victim.process.wait_for_line(NO_SPACE)
        if directory == victim.data:
            ended = victim.process.wait()
            assert ended.exit_code == 1, ended.last_line
            assert NO_SPACE in ended.last_line
        time.sleep(random.uniform(*_DOWN_S))
    finally:
        mark.unlink()
    random.choice((victim.kill, victim.stop))()
    victim.start()


def _pass_over(run: StormRun) -> tuple[StormFigures, Sequence[str]]:
    older = OlderBrokers(Java(run.java.executable, JARS_ROOT / OLDEST_NODE), OLDER_VERSION)
    with stormy_cluster(
        run.controllers,
        run.folder,
        java=run.java,
        tools=run.tools,
        ours=run.ours,
        older=older if run.arguments.older else None,
        has_troubled_disks=run.arguments.disks,
    ) as cluster:
        figures = storm(
            cluster,
            run.random,
            seconds=run.seconds,
            blows_min=2,
            fills_disks=run.arguments.disks,
        )
    return figures, [] if figures.flaws == Flaws() else [str(figures.flaws)]


def _parser() -> ArgumentParser:
    parser = storm_parser(__doc__)
    parser.add_argument("--older", action="store_true", help="the real ones are of 3.9.1")
    parser.add_argument("--disks", action="store_true", help="slow disks, now and then full")
    return parser


if __name__ == "__main__":
    run_storm(_parser(), _pass_over)
