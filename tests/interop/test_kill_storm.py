"""Brokers that are killed at random beneath producers and a group lose and double nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.broker_cluster import OlderBrokers
from tests.interop.kill_storm import (
    EVERYBODY,
    OLDER_VERSION,
    PARTITIONS,
    storm,
    stormy_cluster,
)
from tests.interop.replicated_records import Flaws, flaws_in
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import OLDER_BROKER
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner

KILLS: Final = 5
OURS_BESIDE_ANOTHER: Final = frozenset({11, 12})
StormIn = Callable[[Collection[int], OlderBrokers | None], None]


@pytest.fixture
def storm_in(java: Java, kafka_tools: ToolRunner, tmp_path: Path) -> StormIn:
    """Return what has a storm pass over a cluster of which so many brokers are ours."""

    def pass_over(ours: Collection[int], older: OlderBrokers | None) -> None:
        with stormy_cluster(
            "kvorum", tmp_path, java=java, tools=kafka_tools, ours=ours, older=older
        ) as cluster:
            figures = storm(cluster, Random(7), seconds=0, kills_min=KILLS)
        assert figures.flaws == Flaws()
        assert figures.kills == KILLS
        assert figures.commits > 0
        assert figures.takeovers >= PARTITIONS

    return pass_over


@pytest.mark.slow
def test_ours_lose_double_and_reorder_nothing(storm_in: StormIn) -> None:
    storm_in(EVERYBODY, None)


@pytest.mark.slow
def test_ours_and_a_real_one_lose_double_and_reorder_nothing(storm_in: StormIn) -> None:
    storm_in(OURS_BESIDE_ANOTHER, None)


@pytest.mark.slow
def test_ours_and_one_of_an_older_release_do_neither(
    storm_in: StormIn, java: Java, kafka_jars: JarsOf
) -> None:
    older = Java(java.executable, kafka_jars(OLDER_BROKER))
    storm_in(OURS_BESIDE_ANOTHER, OlderBrokers(older, OLDER_VERSION))


@pytest.mark.parametrize(
    ("numbers", "flaws"),
    [
        ([0, 1, 2, 3], Flaws()),
        ([0, 2, 3], Flaws(lost=1)),
        ([0, 1, 1, 2, 0, 3], Flaws(doubled=2)),
        ([0, 2, 1, 3], Flaws(reordered=1)),
        ([], Flaws(lost=4)),
    ],
)
def test_the_flaws_of_a_log_are_counted(numbers: list[int], flaws: Flaws) -> None:
    assert flaws_in(numbers, range(4)) == flaws
