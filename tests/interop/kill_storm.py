"""Brokers that are killed at random, beneath idempotent producers and a group of consumers.

`python -m tests.interop.kill_storm --minutes 20 --ours 11,12` does for long, and with some real
brokers if wanted, what the tests do for a short while.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from tests.interop.broker_cluster import BrokerCluster, OlderBrokers
from tests.interop.committing_group import CommittingGroup
from tests.interop.replicated_records import Writer, check
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
) -> tuple[int, list[Writer], CommittingGroup]:
    """Kill brokers for so long and so often; check that nothing was lost, doubled or reordered.

    Returns the number of kills, the writers, and the group. The cluster has the topic, and nothing
    in it yet.
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
        for writer in writers:
            check(cluster, writer, EVERYBODY)
        group.wait_for({writer.partition: writer.sent for writer in writers})
    assert group.lost_commits == [], group.lost_commits[:10]
    return kills, writers, group


def _kill_one(cluster: BrokerCluster, random: Random) -> None:
    """The next is killed whether or not this one has caught up by then."""
    time.sleep(random.uniform(*_PAUSE_S))
    victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
    victim.kill()
    time.sleep(random.uniform(*_DOWN_S))
    victim.start()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--ours", default="11,12,13", help="which of 11, 12, 13 are kvorum's")
    parser.add_argument("--older", action="store_true", help="the real ones are of 3.9.1")
    parser.add_argument("--controllers", choices=("kvorum", "kafka"), default="kvorum")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ours: Collection[int] = [int(node_id) for node_id in arguments.ours.split(",") if node_id]
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    older = OlderBrokers(Java(java.executable, JARS_ROOT / OLDER_BROKER), OLDER_VERSION)
    with (
        TemporaryDirectory() as folder,
        ToolRunner(java) as tools,
        stormy_cluster(
            arguments.controllers,
            Path(folder),
            java=java,
            tools=tools,
            ours=ours,
            older=older if arguments.older else None,
        ) as cluster,
    ):
        kills, writers, group = storm(
            cluster, Random(arguments.seed), seconds=arguments.minutes * 60, kills_min=1
        )
    sent = sum(writer.sent for writer in writers)
    sys.stdout.write(
        f"{kills} kills; {sent:,} records acknowledged, and in all logs once and in order; "
        f"{group.takeovers} partitions taken over, {group.commits} commits acknowledged, "
        f"{group.doubled:,} records read again\n"
    )


if __name__ == "__main__":
    main()
