"""The wish for other voters (KIP-642) in quorums that real controllers are part of.

A real controller knows nothing of the wish: it replays the record, keeps it through its snapshots
and restarts, and is added and removed like any other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kafka.tools import ToolRunner
from tests.interop.kvorum_node import run_kvorum
from tests.interop.metadata_shell import Shell
from tests.interop.test_mixed_quorum import Voter, described
from tests.interop.test_mixed_voter_changes import until, voter_ids
from tests.process.quorum.reassigning import alter, ongoing

from kvorum.wire.error_codes import ErrorCode

pytestmark = [pytest.mark.interop, pytest.mark.slow]
OURS: Collection[int] = (1, 4)
REAL: Collection[int] = (2, 3)
KEY = "kvorum.quorum.target.voters"
# The parts of a real node that records go through: what they log as an error concerns the wish.
# Others fail now and then when a node starts or stops, or while nobody leads.
CONCERNED = (
    " fault",
    "Fault",
    "ConfigPublisher",
    "ConfigurationControlManager",
    "Loader",
    "Snapshot",
    KEY,
)
# A real node that stops closes its parts while others still use them, and says so as a fault: its
# loader reads from a log that is closed, or has no publishers yet where the start was not over.
STOPPING = re.compile(
    r"Terminating process due to signal.*?(?=Registered signal handlers|\Z)", re.DOTALL
)
ERROR = re.compile(" ERROR | FATAL ")
Controllers = dict[int, Voter]


@pytest.fixture
def controllers(tmp_path: Path, java: Java) -> Iterator[Controllers]:
    """Controllers of both kinds: node 1 is a quorum of its own, the others are observers."""
    ports = free_ports(4)
    made = {
        node_id: Voter(node_id, port, tmp_path / str(node_id))
        for node_id, port in zip((*OURS, *REAL), ports, strict=True)
    }
    servers = ",".join(f"127.0.0.1:{one.port}" for one in made.values())
    cluster_id = run_kvorum("storage", "random-uuid").strip()
    for node_id, one in made.items():
        one.folder.mkdir()
        one.properties.write_text(_settings(one, servers), encoding="utf-8")
        start = "--standalone" if node_id == 1 else "--no-initial-controllers"
        config = ("--config", str(one.properties))
        run_kvorum("storage", "format", "--cluster-id", cluster_id, *config, start)
        properties = str(one.properties)
        one.command = (
            [sys.executable, "-m", "kvorum.cli", "server", properties]
            if node_id in OURS
            else java.command("kafka.Kafka", properties, heap_mb=384, log_level="INFO")
        )
    yield made
    for one in made.values():
        if one.process is not None:
            one.process.kill()
            one.process.wait()


def _settings(one: Voter, servers: str) -> str:
    settings = {
        "process.roles": "controller",
        "node.id": str(one.node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{one.port}",
        "log.dirs": str(one.data),
        "controller.quorum.bootstrap.servers": servers,
        # Snapshots after a few records, so that the wish goes through snapshots as well.
        "metadata.log.max.record.bytes.between.snapshots": "2000",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def start(controllers: Mapping[int, Voter], *node_ids: int) -> None:
    for node_id in node_ids:
        controllers[node_id].start()


def are_observing(controllers: Controllers, *node_ids: int) -> None:
    """Wait until these replicas fetch from the leader."""
    until(
        controllers,
        lambda found: (
            {*node_ids} <= {one.replica_id for one in (*found.observers, *found.current_voters)}
        ),
    )


def want(controllers: Controllers, replicas: Sequence[int] | None) -> None:
    """Say at the leader which voters are wanted; the targets have to be registered by then."""

    def is_written() -> bool:
        for one in controllers.values():
            found = described(one.port)
            if found is not None and found.error_code == ErrorCode.NONE:
                code, message = alter(f"127.0.0.1:{controllers[found.leader_id].port}", replicas)
                assert code in {ErrorCode.NONE, ErrorCode.INVALID_REPLICA_ASSIGNMENT}, message
                return code == ErrorCode.NONE
        return False

    until(controllers, lambda _: is_written())


def is_reached(controllers: Controllers, replicas: Collection[int]) -> int:
    """Wait until these are the voters and the wish is cleared; return who leads."""
    found = until(
        controllers,
        lambda found: (
            voter_ids(found) == {*replicas}
            and ongoing(f"127.0.0.1:{controllers[found.leader_id].port}") is None
        ),
    )
    return found.leader_id


def assert_nothing_wrong(one: Voter) -> None:
    log = (one.folder / "log.txt").read_text(encoding="utf-8")
    assert faults(log) == []
    assert KEY in log, "it never saw the wish"


def faults(log: str) -> list[str]:
    """Return the errors that a real node logged while it ran and that concern records."""
    errors = [line for line in STOPPING.sub("", log).splitlines() if ERROR.search(line)]
    return [line for line in errors if any(text in line for text in CONCERNED)]


def whole_log(one: Voter) -> bytes:
    """Return the log of a stopped controller, with the snapshot that it begins with."""
    folder = one.data / "__cluster_metadata-0"
    segments = sorted(folder.glob("*.log"))
    snapshots = folder.glob(f"{segments[0].stem}-*.checkpoint")
    return b"".join(file.read_bytes() for file in (*snapshots, *segments))


def test_a_wish_outlives_real_leaders_snapshots_and_restarts(
    controllers: Controllers, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    start(controllers, 1, 2, 3, 4)
    are_observing(controllers, 2, 3, 4)
    want(controllers, (1, 2, 3))
    is_reached(controllers, (1, 2, 3))
    # The wish waits for its target, which is down, and stays.
    controllers[4].stop()
    want(controllers, (1, 3, 4))
    controllers[1].stop()
    found = until(controllers, lambda found: found.leader_id in REAL)
    leader = controllers[found.leader_id]
    described_by_tool = kafka_tools.run(
        "kafka-configs",
        *("--bootstrap-controller", f"127.0.0.1:{leader.port}"),
        *("--entity-type", "brokers", "--entity-default", "--describe"),
    )
    assert KEY in described_by_tool.stdout, described_by_tool
    for node_id in REAL:
        controllers[node_id].stop()
    shown = Shell(kafka_tools, tmp_path).tree(whole_log(leader))
    assert f"{KEY}:" in shown
    start(controllers, 2, 3)
    until(controllers, lambda found: found.leader_id in REAL and found.high_watermark > 0)
    start(controllers, 1, 4)
    # A real leader does not act on the wish. Once ours leads it goes on.
    until(controllers, lambda found: _hands_over(controllers, found.leader_id))
    is_reached(controllers, (1, 3, 4))
    for node_id in REAL:
        controllers[node_id].stop()
        assert_nothing_wrong(controllers[node_id])


def _hands_over(controllers: Controllers, leader_id: int) -> bool:
    """Restart a real leader; return whether one of ours leads."""
    if leader_id in OURS:
        return True
    controllers[leader_id].stop()
    controllers[leader_id].start()
    return False
