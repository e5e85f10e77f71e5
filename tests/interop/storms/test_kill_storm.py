"""Brokers that are killed at random beneath producers and a group lose and double nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.broker_cluster import OlderBrokers
from tests.interop.storms.kill_storm import (
    OLDER_VERSION,
    PARTITIONS,
    StormFigures,
    storm,
    stormy_cluster,
)
from tests.interop.storms.storm_command import EVERYBODY
from tests.interop.traffic import Flaws, flaws_in
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import OLDEST_NODE
from tests.support.kafka.java import Java, ToolRunner

KILLS: Final = 5
BLOWS_WITH_DISKS: Final = 6
OURS_BESIDE_ANOTHER: Final = frozenset({11, 12})


@dataclass(frozen=True)
class Storms:
    """Has a storm pass over a cluster of which so many brokers are ours."""

    java: Java
    tools: ToolRunner
    folder: Path

    def pass_over(
        self,
        ours: Collection[int],
        *,
        blows_min: int = KILLS,
        older: OlderBrokers | None = None,
        has_troubled_disks: bool = False,
    ) -> StormFigures:
        with stormy_cluster(
            "kvorum",
            self.folder,
            java=self.java,
            tools=self.tools,
            ours=ours,
            older=older,
            has_troubled_disks=has_troubled_disks,
        ) as cluster:
            figures = storm(
                cluster, Random(7), seconds=0, blows_min=blows_min, fills_disks=has_troubled_disks
            )
        assert figures.flaws == Flaws()
        assert figures.kills + figures.full_disks == blows_min
        assert figures.commits > 0
        assert figures.takeovers >= PARTITIONS
        return figures


@pytest.fixture
def storms(java: Java, kafka_tools: ToolRunner, tmp_path: Path) -> Storms:
    return Storms(java, kafka_tools, tmp_path)


@pytest.mark.slow
def test_ours_lose_double_and_reorder_nothing(storms: Storms) -> None:
    storms.pass_over(EVERYBODY)


@pytest.mark.slow
def test_ours_on_slow_disks_that_are_full_now_and_then_do_neither(storms: Storms) -> None:
    figures = storms.pass_over(EVERYBODY, blows_min=BLOWS_WITH_DISKS, has_troubled_disks=True)
    assert figures.full_disks == BLOWS_WITH_DISKS // 2


@pytest.mark.slow
def test_ours_and_a_real_one_lose_double_and_reorder_nothing(storms: Storms) -> None:
    storms.pass_over(OURS_BESIDE_ANOTHER)


@pytest.mark.slow
def test_ours_and_one_of_an_older_release_do_neither(
    storms: Storms, java: Java, kafka_jars: JarsOf
) -> None:
    older = Java(java.executable, kafka_jars(OLDEST_NODE))
    storms.pass_over(OURS_BESIDE_ANOTHER, older=OlderBrokers(older, OLDER_VERSION))


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
