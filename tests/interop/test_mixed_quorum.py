"""Two static voters, one ours and one real Kafka's: they elect each other and keep one log."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kvorum_node import run_kvorum

from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from kvorum.wire.records import read_batches

pytestmark = pytest.mark.interop

OURS, REAL = 1, 2
PATIENCE_S = 60
ROUNDS_MAX = 6
LOG = Path("__cluster_metadata-0", "00000000000000000000.log")


@dataclass
class Voter:
    """One controller process."""

    node_id: int
    port: int
    folder: Path
    command: list[str] = field(default_factory=list[str])
    process: subprocess.Popen[bytes] | None = None

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        with (self.folder / "log.txt").open("ab") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=out)

    def stop(self) -> None:
        """Stop in order; a leader hands over to the other first."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[dict[int, Voter]]:
    """Both voters, formatted and not started."""
    ports = free_ports(2)
    made = {
        node_id: Voter(node_id, port, tmp_path / str(node_id))
        for node_id, port in zip((OURS, REAL), ports, strict=True)
    }
    quorum = ",".join(f"{voter.node_id}@127.0.0.1:{voter.port}" for voter in made.values())
    cluster_id = run_kvorum("storage", "random-uuid").strip()
    for voter in made.values():
        write_settings(voter, quorum)
        config = ["--config", str(voter.properties)]
        run_kvorum("storage", "format", "--cluster-id", cluster_id, *config)
    ours, real = made[OURS], made[REAL]
    ours.command = [sys.executable, "-m", "kvorum.cli", "server", str(ours.properties)]
    real.command = java.command("kafka.Kafka", str(real.properties), heap_mb=384, log_level="INFO")
    yield made
    for voter in made.values():
        if voter.process is not None:
            voter.process.kill()
            voter.process.wait()


def write_settings(voter: Voter, quorum: str) -> None:
    settings = {
        "process.roles": "controller",
        "node.id": str(voter.node_id),
        "controller.quorum.voters": quorum,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{voter.port}",
        "log.dirs": str(voter.data),
    }
    voter.folder.mkdir()
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    voter.properties.write_text(text, encoding="utf-8")


def described(port: int) -> DescribeQuorumResponsePartitionData | None:
    """Ask a controller about the quorum; None where nobody answers."""
    topic = DescribeQuorumRequestTopicData(
        "__cluster_metadata", [DescribeQuorumRequestPartitionData()]
    )

    async def ask() -> DescribeQuorumResponsePartitionData:
        connection = await ClientConnection.open(
            host="127.0.0.1", port=port, client_id="test", timeout_ms=5000
        )
        try:
            response = await connection.request(
                DescribeQuorumRequest([topic]), DescribeQuorumResponse, timeout_ms=5000
            )
            return response.topics[0].partitions[0]
        finally:
            await connection.close()

    try:
        return asyncio.run(ask())
    except ClientConnectionError:
        return None


def leader_with_a_follower(voters: dict[int, Voter]) -> Voter | None:
    """Return who leads, once the other has all that is committed."""
    for voter in voters.values():
        found = described(voter.port)
        if found is not None and found.error_code == 0 and found.high_watermark > 0:
            ends = [state.log_end_offset for state in found.current_voters]
            if min(ends) >= found.high_watermark:
                return voters[found.leader_id]
    return None


def eventually(find: Callable[[], Voter | None]) -> Voter:
    deadline = time.monotonic() + PATIENCE_S
    while (found := find()) is None:
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)
    return found


def test_leadership_goes_back_and_forth_and_the_logs_are_the_same(
    voters: dict[int, Voter],
) -> None:
    for voter in voters.values():
        voter.start()
    has_led: set[int] = set()
    for _ in range(ROUNDS_MAX):
        leader = eventually(lambda: leader_with_a_follower(voters))
        has_led.add(leader.node_id)
        if has_led == {OURS, REAL}:
            break
        leader.stop()
        leader.start()
    assert has_led == {OURS, REAL}
    last = eventually(lambda: leader_with_a_follower(voters))
    follower = voters[REAL if last.node_id == OURS else OURS]
    follower.stop()
    last.stop()
    logs = [(voter.data / LOG).read_bytes() for voter in voters.values()]
    shared = min(map(len, logs))
    assert logs[0][:shared] == logs[1][:shared]
    epochs = [batch.partition_leader_epoch for batch in read_batches(logs[0][:shared])]
    assert len(set(epochs)) >= 2
