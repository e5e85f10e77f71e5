"""Flink's exactly-once sink on our brokers: its job fails, and job and brokers are killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.copied_values import COPIES, SOURCE, CopiedValues, copying_brokers
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import FLINK
from tests.support.kafka.java import Java
from tests.support.node_process import NodeProcess

HEAP_MB: Final = 400
RUNS: Final = "submitted"
"""The line of a program whose job may run."""


@pytest.fixture
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with copying_brokers(run_brokers) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("naming", ["INCREMENTING", "POOLING"])
def test_each_value_is_copied_once_whatever_fails_and_is_killed(
    cluster: BrokerCluster, java: Java, kafka_jars: JarsOf, tmp_path: Path, naming: str
) -> None:
    """The transactions that a job left open are found by their names, or listed by the brokers."""
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    flink = Java(java.executable, kafka_jars(FLINK))
    places = (SOURCE, COPIES, str(checkpoints))
    command = flink.program("CopyByFlink", cluster.servers, *places, naming, heap_mb=HEAP_MB)
    values = CopiedValues(cluster.servers)
    with NodeProcess(command, tmp_path / "flink.log", ready=RUNS) as job:
        values.begin()
        values.end()

        values.begin()
        values.write("fail once")
        values.end()

        values.begin()
        job.kill()
        job.start()
        values.end()

        # Each broker leads and coordinates something.
        for broker in cluster.brokers.values():
            values.begin()
            broker.kill()
            values.end()
            broker.start()
    assert values.copies() == values.written
    assert values.count_of_aborted() > 0
