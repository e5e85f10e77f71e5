"""Rounds of faults over quorums of processes, while clients write: nothing is lost or doubled."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom

import pytest
from tests.process.quorum.faults import Chaos
from tests.process.quorum.logs import assert_kafka_reads_the_same, assert_same_batches
from tests.support.fixtures import Report
from tests.support.kafka.tools import ToolRunner
from tests.support.quorum.broker import register_broker
from tests.support.quorum.members import Quorum
from tests.support.quorum.writers import Writers

WRITERS = 3
ENDS = ("kill", "kill", "stop")
CUTS = ("pause", "isolate", "mute", "deafen", "cut_one_way", "slow")
SETTINGS = {
    # Some of the faults shall meet a snapshot being written, or the end of a segment.
    "metadata.log.max.record.bytes.between.snapshots": "50000",
    "internal.metadata.log.segment.bytes": "70000",
    "controller.quorum.auto.join.enable": "true",
}


@pytest.fixture
def seed() -> int:
    """What a test draws its rounds from: a new one each time, or the one to be tried again."""
    return int(os.environ.get("KVORUM_SEED", SystemRandom().randrange(2**32)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "is_dynamic", "names", "rounds"),
    [
        pytest.param(3, True, ENDS, 30, id="three-end"),
        pytest.param(3, False, CUTS, 25, id="three-cut"),
        pytest.param(5, False, ENDS, 20, id="five-end"),
        pytest.param(5, True, (*ENDS, *CUTS, "lose_disk"), 28, id="five-everything"),
    ],
)
def test_no_fault_costs_an_acknowledged_change(
    tmp_path: Path,
    kafka_tools: ToolRunner,
    report: Report,
    seed: int,
    count: int,
    *,
    is_dynamic: bool,
    names: Sequence[str],
    rounds: int,
) -> None:
    started = time.monotonic()
    with Quorum(tmp_path, count, is_dynamic=is_dynamic, settings=SETTINGS) as quorum:
        members = list(quorum.members.values())
        writers = Writers([member.address for member in members], count=WRITERS, seed=seed)
        chaos = Chaos(quorum, writers, random=Random(seed))
        with chaos.told_of(seed):
            register_broker(quorum)
            with writers:
                writers.wait_for_progress()
                for _ in range(rounds):
                    chaos.round(names)
            end_offset = quorum.wait_until_settled()
            quorum.kill_all_at_once()
            assert_same_batches(members, end_offset=end_offset)
            assert_kafka_reads_the_same(kafka_tools, members, writers, end_offset=end_offset)
    report(
        f"{rounds} rounds over {count} controllers in {time.monotonic() - started:.1f} s: "
        f"{len(writers.acknowledged)} topics acknowledged, {writers.retries_that_exist} by a "
        f"second try, {len(writers.wished) - len(writers.acknowledged)} unknown, "
        f"log end {end_offset}"
    )
