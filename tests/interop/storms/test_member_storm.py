"""A consumer group shares its partitions, whichever members are struck and brokers killed."""

from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.storms.member_storm import Story, storm, stormy_cluster
from tests.interop.storms.storm_command import EVERYBODY
from tests.support.kafka.java import Java, ToolRunner

BLOWS: Final = 12


@pytest.mark.slow
def test_no_partition_has_two_members_and_no_commit_is_lost(
    java: Java, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    with stormy_cluster(
        "kvorum", tmp_path, java=java, tools=kafka_tools, ours=EVERYBODY
    ) as cluster:
        figures = storm(cluster, Random(7), seconds=0, blows_min=BLOWS)
    assert figures.flaws == []
    assert min(figures.takeovers, figures.commits, figures.looks) > 0


def test_a_takeover_below_an_earlier_commit_is_a_flaw() -> None:
    story = Story()
    for line in (
        '{"at": 1.0, "committed": {"0": 10}}',
        '{"at": 2.0, "committed": {"0": 30, "1": 5}}',
        '{"at": 1.5, "taken": {"0": 10}}',
        '{"at": 2.5, "taken": {"0": 30, "1": 5}}',
    ):
        story.add(line)
    assert story.lost_commits() == []
    story.add('{"at": 2.5, "taken": {"0": 29}}')
    story.add('{"at": 2.5, "taken": {"1": ')
    assert story.lost_commits() == ["0: taken at 29, 30 known"]


def test_records_are_read_up_to_the_first_gap() -> None:
    story = Story()
    story.add('{"at": 1.0, "read": {"0": [0, 4]}}')
    story.add('{"at": 2.0, "read": {"0": [3, 6]}}')
    story.add('{"at": 3.0, "read": {"0": [8, 9]}}')
    assert story.end_of_read(0) == 7
