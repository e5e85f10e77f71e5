"""The command that runs a cluster in one process: what it says, keeps and refuses."""

import json
import signal
from pathlib import Path

import pytest
from tests.support.node_process import KVORUM, NodeProcess
from tests.support.topics import create

from kvorum.cli import main
from kvorum.cli.dev_status import status_line
from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.node import ClusterSize, Place, prepare_nodes
from kvorum.wire.error_codes import ErrorCode

DEV = [*KVORUM, "dev", "--json"]


def run_dev(*arguments: str) -> tuple[dict[str, object], list[int]]:
    """Run it until it answers, make a topic, stop it; return what it said and the topic's error."""
    with NodeProcess([*DEV, *arguments], ready="bootstrap_servers") as process:
        (line,) = process.lines()
        facts: dict[str, object] = json.loads(line)
        codes = create(str(facts["bootstrap_servers"]).split(",")[-1], "made")
        process.send(signal.SIGINT)
        ended = process.wait()
    assert (ended.exit_code, ended.lines) == (0, (line,))
    return facts, codes


@pytest.mark.parametrize(
    ("size", "node_ids"),
    [
        ([], [1, 2, 3, 101]),
        (["--controllers", "1"], [1]),
        (["--controllers", "1", "--brokers", "2"], [1, 101, 102]),
    ],
    ids=["default", "one node", "two brokers"],
)
def test_it_tells_where_it_is_and_comes_back_on_its_data(
    tmp_path: Path, size: list[str], node_ids: list[int]
) -> None:
    facts, codes = run_dev("--port", "0", "--data", str(tmp_path), *size)
    assert facts["data"] == str(tmp_path)
    assert facts["node_ids"] == node_ids
    assert codes == [ErrorCode.NONE]
    again, codes = run_dev("--data", str(tmp_path))
    assert again == facts
    assert codes == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert list(tmp_path.rglob(".kafka_cleanshutdown"))


def test_the_data_of_another_number_of_controllers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    EmbeddedCluster(tmp_path, size=ClusterSize(controllers=3, brokers=1)).discard()
    assert main(["dev", "--controllers", "5", "--data", str(tmp_path)]) == 2
    assert f"the data in {tmp_path} is of a cluster with 3 controller(s)" in capsys.readouterr().err


def test_a_start_that_was_interrupted_is_taken_up_with_the_same_voters(tmp_path: Path) -> None:
    size = ClusterSize(controllers=3, brokers=1)
    EmbeddedCluster(tmp_path, size=size).discard()
    before = _metadata(tmp_path)
    third = tmp_path / "controller-3"
    for file in sorted(third.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert _metadata(tmp_path) != before
    EmbeddedCluster(tmp_path, size=size).discard()
    assert _metadata(tmp_path) == before


def _metadata(folder: Path) -> dict[str, set[str]]:
    """Return who each directory says it is of."""
    return {
        file.parent.parent.name: {
            line for line in file.read_text().splitlines() if not line.startswith("#")
        }
        for file in folder.rglob("meta.properties")
    }


def test_of_a_pair_of_nodes_only_the_first_broker_gets_the_port_asked_for(tmp_path: Path) -> None:
    places = [
        Place(
            node_id=node_id,
            folder=tmp_path / str(node_id),
            is_controller=node_id == 1,
            is_broker=True,
        )
        for node_id in (1, 2)
    ]
    nodes = prepare_nodes(tmp_path, places, broker_port=0)
    ports = [embedded.broker_port for embedded in nodes.values()]
    for embedded in nodes.values():
        embedded.node.discard()
    again = prepare_nodes(tmp_path, places, broker_port=ports[0])
    for embedded in again.values():
        embedded.node.discard()
    assert [embedded.broker_port for embedded in again.values()] == ports


async def test_the_status_is_that_of_the_leader(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, size=ClusterSize(controllers=3, brokers=0))
    await cluster.start()
    try:
        line = status_line(cluster, uptime_seconds=61).plain
        assert f"up 1:01   leader {cluster.leader_id} of 3, epoch " in line
        assert "topics 0, partitions 0" in line
    finally:
        await cluster.stop()
