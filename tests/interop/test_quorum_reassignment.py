"""The target voters (KIP-642) in quorums that real controllers are part of.

A real controller knows nothing of target voters: it replays the record, keeps it through its
snapshots and restarts, and is added and removed like any other.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from tests.interop.metadata_shell import SHELL_LEVEL, Shell
from tests.interop.mixed_quorum import (
    KEY,
    are_observing,
    assert_nothing_wrong,
    formed,
    is_reached,
    whole_log,
)
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.quorum.quorum import Quorum
from tests.support.quorum.reassigning import want

pytestmark = pytest.mark.slow
OURS: Collection[int] = (1, 4)
REAL: Collection[int] = (2, 3)


@pytest.fixture
def controllers(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """Controllers of both kinds: node 1 is a quorum of its own, the others are observers."""
    with formed(tmp_path, java, ours=OURS, real=REAL, first=1, options=SHELL_LEVEL) as made:
        yield made


def test_target_voters_outlive_real_leaders_snapshots_and_restarts(
    controllers: Quorum, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    controllers.start(1, 2, 3, 4)
    are_observing(controllers, 2, 3, 4)
    want(controllers, (1, 2, 3))
    is_reached(controllers, (1, 2, 3))
    # The quorum waits for a target, which is down, and the target voters stay.
    controllers.members[4].stop()
    want(controllers, (1, 3, 4))
    controllers.members[1].stop()
    found = controllers.until("a real one leads", lambda found: found.leader_id in REAL)
    leader = controllers.members[found.leader_id]
    described_by_tool = kafka_tools.run(
        "kafka-configs",
        *("--bootstrap-controller", leader.address),
        *("--entity-type", "brokers", "--entity-default", "--describe"),
    )
    assert KEY in described_by_tool.stdout, described_by_tool
    for node_id in REAL:
        controllers.members[node_id].stop()
    shown = Shell(kafka_tools, tmp_path).tree(whole_log(leader))
    assert f"{KEY}:" in shown
    controllers.start(2, 3)
    controllers.until(
        "a real one leads again", lambda found: found.leader_id in REAL and found.high_watermark > 0
    )
    controllers.start(1, 4)
    is_reached(controllers, (1, 3, 4))
    for node_id in REAL:
        controllers.members[node_id].stop()
        assert_nothing_wrong(controllers.members[node_id])
