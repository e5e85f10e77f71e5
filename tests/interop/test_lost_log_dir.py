"""A real 4.3.1 controller takes our broker's word on where logs are and what it has lost."""

from pathlib import Path

import pytest
from tests.interop.mixed_processes import Addresses, format_nodes, running, write_settings
from tests.support.combined_node import CombinedNode
from tests.support.kafka.java import Java
from tests.support.lost_log_dir import leaders, lose_the_disk
from tests.support.ports import free_ports


@pytest.mark.slow
def test_a_real_controller_elects_nobody_in_a_lost_directory(
    tmp_path: Path, java: Java, disk: Path
) -> None:
    broker_port, controller_port = free_ports(2)
    # The broker's data, as the story knows it.
    node = CombinedNode(tmp_path, broker_port, controller_port)
    addresses = Addresses(node.broker, node.controller)
    write_settings(tmp_path, addresses)
    properties = tmp_path / "broker.properties"
    directories = f"log.dirs={node.data},{disk}\nmetadata.log.dir={node.data}\n"
    text = properties.read_text(encoding="utf-8") + directories
    properties.write_text(text, encoding="utf-8")
    format_nodes(tmp_path)
    with (
        running(java, "kafka", tmp_path / "controller.properties"),
        running(java, "kvorum", properties),
    ):
        assert leaders(node) == {}
        lose_the_disk(node, disk, broker_id=2)
