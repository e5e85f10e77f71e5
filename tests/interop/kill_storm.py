"""Brokers that are killed at random, beneath idempotent producers and a group of consumers.

`python -m tests.interop.kill_storm --minutes 10 --ours 11,12` does for long, and with some real
brokers if wanted, what the tests do for a short while.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Final

from tests.interop.broker_cluster import BrokerCluster, OlderBrokers
from tests.interop.committing_group import CommittingGroup
from tests.interop.replicated_records import Flaws, Writer, flaws_of
from tests.support.kafka.fetch_jars import (
    JARS_ROOT,
    OLDER_BROKER,
    REFERENCE_RELEASE,
    find_java,
)
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import Kind

EVERYBODY: Final = frozenset({11, 12, 13})
PARTITIONS: Final = 3
MEMBERS: Final = 3
TOPIC: Final = "stormy"
GROUP: Final = "storm-watchers"
# The metadata.version that brokers of OLDER_BROKER can follow.
OLDER_VERSION: Final = "3.9"
# A commit, too, may only count as stored where one broker more has it.
THREE_REPLICAS: Final = {
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}
_PAUSE_S: Final = (1.0, 6.0)
_DOWN_S: Final = (0.2, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StormFigures:
    """Count what happened in a storm, and the flaws of all logs together after it."""

    kills: int
    acknowledged: int
    flaws: Flaws
    commits: int
    takeovers: int
    read_again: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills; {self.acknowledged:,} records acknowledged: "
            f"{self.flaws.lost} lost, {self.flaws.doubled} doubled, "
            f"{self.flaws.reordered} reordered; {self.takeovers} partitions taken over, "
            f"{self.commits} commits acknowledged, {self.read_again:,} records read again"
        )


@contextmanager
def stormy_cluster(
    kind: Kind,
    folder: Path,
    *,
    java: Java,
    tools: ToolRunner,
    ours: Collection[int],
    older: OlderBrokers | None = None,
) -> Generator[BrokerCluster]:
    """Run three brokers, of which `ours` are kvorum's, on one controller; they have the topic."""
    made = BrokerCluster(
        kind,
        folder,
        brokers=len(EVERYBODY),
        java=java,
        tools=tools,
        ours=ours,
        controllers=1,
        settings=THREE_REPLICAS,
        older=older,
    )
    with made.running() as cluster:
        cluster.wait_for_brokers(*EVERYBODY)
        cluster.tool(
            *("kafka-topics", "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS)),
            *("--replication-factor", "3", "--config", "segment.bytes=1048576"),
        )
        cluster.wait_for_partitions(TOPIC, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        yield cluster


def storm(
    cluster: BrokerCluster, random: Random, *, seconds: float, kills_min: int
) -> StormFigures:
    """Kill brokers for so long and so often, then count what was lost, doubled or reordered.

    The group has to read and commit everything, and may lose no commit. The cluster has the topic,
    and nothing in it yet.
    """
    kills = 0
    with CommittingGroup(cluster.servers, TOPIC, GROUP, members=MEMBERS) as group:
        with ExitStack() as stack:
            writers = [
                stack.enter_context(Writer(cluster.servers, TOPIC, partition=partition))
                for partition in range(PARTITIONS)
            ]
            for writer in writers:
                writer.wait_for_acknowledged(100)
            end = time.monotonic() + seconds
            while time.monotonic() < end or kills < kills_min:
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
        acknowledged=sum(len(writer.acknowledged) for writer in writers),
        flaws=flaws,
        commits=group.commits,
        takeovers=group.takeovers,
        read_again=group.doubled,
    )


def _kill_one(cluster: BrokerCluster, random: Random) -> None:
    """The next is killed whether or not this one has caught up by then."""
    time.sleep(random.uniform(*_PAUSE_S))
    victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
    victim.kill()
    time.sleep(random.uniform(*_DOWN_S))
    victim.start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--ours", default="11,12,13", help="which of 11, 12, 13 are kvorum's")
    parser.add_argument("--older", action="store_true", help="the real ones are of 3.9.1")
    parser.add_argument("--controllers", choices=("kvorum", "kafka"), default="kvorum")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ours: Collection[int] = [int(node_id) for node_id in arguments.ours.split(",") if node_id]
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    older = OlderBrokers(Java(java.executable, JARS_ROOT / OLDER_BROKER), OLDER_VERSION)
    folder = Path(mkdtemp(prefix="kill-storm-"))
    sys.stdout.write(f"the brokers' files are in {folder}, and stay there after a failure\n")
    with (
        ToolRunner(java) as tools,
        stormy_cluster(
            arguments.controllers,
            folder,
            java=java,
            tools=tools,
            ours=ours,
            older=older if arguments.older else None,
        ) as cluster,
    ):
        figures = storm(
            cluster, Random(arguments.seed), seconds=arguments.minutes * 60, kills_min=1
        )
    sys.stdout.write(f"{figures}\n")
    if figures.flaws != Flaws():
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
