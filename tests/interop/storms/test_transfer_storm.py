"""Transfers and copies in transactions are whole, whichever brokers and applications are killed."""

from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.storms.storm_command import EVERYBODY
from tests.interop.storms.transfer_storm import storm, transferring_cluster
from tests.support.kafka.java import Java, ToolRunner

KILLS: Final = 4


@pytest.mark.slow
def test_no_transaction_is_torn_lost_or_done_twice(
    java: Java, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    with transferring_cluster(
        "kvorum", tmp_path, java=java, tools=kafka_tools, ours=EVERYBODY
    ) as cluster:
        figures = storm(cluster, Random(7), tmp_path / "history.jsonl", seconds=0, kills_min=KILLS)
    assert figures.flaws == ()
    assert figures.kills == KILLS
    assert min(figures.committed, figures.aborted, figures.copied) > 0
