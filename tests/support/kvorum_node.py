"""A kvorum node in a process of its own, started as its users start it."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.clients.kafka_python import KafkaPythonDriver
from tests.support.kafka.server import OnlyNode
from tests.support.node_process import kvorum_server, run_kvorum


class KvorumNode(OnlyNode):
    """One combined node: formatted with ``kvorum storage``, run by ``kvorum server``."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, overrides)
        self.cluster_id = ""
        self.process = kvorum_server(self.files.properties, folder / "node.log")

    def __enter__(self) -> Self:
        self.format()
        return super().__enter__()

    def format(self) -> None:
        """Give the directory its identity, under a new cluster id."""
        self.cluster_id = run_kvorum("storage", "random-uuid").strip()
        identity = ["--cluster-id", self.cluster_id, "--standalone"]
        run_kvorum("storage", "format", *identity, "--config", str(self.files.properties))

    def start(self) -> None:
        """Start the process and return when it serves its metadata."""
        super().start()
        try:
            with KafkaPythonDriver(self.bootstrap_servers) as driver:
                self.process.wait_until(
                    lambda: bool(driver.describe_cluster().brokers), "the broker is unfenced"
                )
        except BaseException:
            self.process.kill()
            raise


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((host, int(port))) == 0
