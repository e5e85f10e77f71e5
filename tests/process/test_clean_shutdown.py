"""The mark of a clean shutdown, in the directory of a broker that never opens its logs."""

from pathlib import Path

from tests.support.node import CLUSTER_ID
from tests.support.node_process import KVORUM, NodeProcess, run_python
from tests.support.ports import free_ports

from kvorum.storage.files import RealFileSystem
from kvorum.storage.small_files.clean_shutdown import (
    CLEAN_SHUTDOWN_FILE,
    broker_epoch_of,
    write_clean_shutdown,
)

BROKER_EPOCH = 70
IS_ALONE = "A peer is lost"
"""The line of a broker that has looked for its controller."""


def lone_broker(folder: Path) -> Path:
    """Format the directory of a broker whose controller does not run; return its properties."""
    listening, controller = free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(
        f"process.roles=broker\nnode.id=11\nlisteners=PLAINTEXT://127.0.0.1:{listening}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
        f"controller.listener.names=CONTROLLER\nlog.dirs={folder / 'data'}\n"
    )
    done = run_python(
        "-m", "kvorum.cli", "storage", "format", "-t", CLUSTER_ID, "-c", str(properties)
    )
    assert done.returncode == 0, done.stderr
    return properties


def test_a_broker_that_is_stopped_before_it_opens_its_logs_was_cleanly_shut_down(
    tmp_path: Path,
) -> None:
    """As in Kafka: without the mark its controller would take it out of the ELR (KIP-966)."""
    properties = lone_broker(tmp_path)
    write_clean_shutdown(tmp_path / "data", RealFileSystem(), broker_epoch=BROKER_EPOCH)
    command = [*KVORUM, "server", str(properties)]
    with NodeProcess(command, tmp_path / "log", ready=IS_ALONE) as broker:
        broker.kill()
    mark = tmp_path / "data" / CLEAN_SHUTDOWN_FILE
    assert broker_epoch_of(mark.read_bytes()) == BROKER_EPOCH
