"""A real 4.3.1 controller takes our broker's word on where logs are and what it has lost."""

from pathlib import Path

import pytest
from tests.support.kafka.java import Java
from tests.support.lost_log_dir import leaders, lose_the_disk
from tests.support.node import NO_VOTERS, Node


@pytest.mark.slow
def test_a_real_controller_elects_no_replica_in_a_lost_directory(
    tmp_path: Path, java: Java, disk: Path
) -> None:
    controller = Node(tmp_path / "controller", {"process.roles": "controller"}, java=java)
    data = tmp_path / "broker" / "data"
    settings = {
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": controller.controller,
        "log.dirs": f"{data},{disk}",
        "metadata.log.dir": str(data),
    }
    broker = Node(tmp_path / "broker", settings, node_id=2)
    with controller.format(), broker.format(NO_VOTERS):
        assert leaders(broker) == {}
        lose_the_disk(broker, disk, broker_id=2)
