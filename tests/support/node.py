"""One node in a process of its own, or a controller and a broker in one each, of either kind."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol, Self

from tests.support.kafka.java import Java, ToolRunner
from tests.support.node_process import (
    KAFKA_RUNS,
    NodeProcess,
    kvorum_server,
    run_kvorum,
    write_properties,
)
from tests.support.ports import free_ports

from kvorum.metadata.features import FEATURES, Feature
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.uuid_text import uuid_from_text

Kind = Literal["kvorum", "kafka"]
Key = tuple[int, str]
"""A replica: its node id, and the id of its metadata directory."""
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER_CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
LOG_DIRECTORY: Final = "__cluster_metadata-0"
COMBINED: Final = "broker,controller"
STANDALONE: Final = ("--standalone",)
NO_VOTERS: Final = ("--no-initial-controllers",)
FEATURES_SERVED_IN_PART: Final[Mapping[str, Feature]] = MappingProxyType(
    {one.name: one for one in FEATURES if one.served_max < one.levels[-1].level}
)
"""The features of which Kafka has higher levels than kvorum's brokers serve."""
LEVELS_OF_OURS: Final = tuple(
    word
    for name, feature in FEATURES_SERVED_IN_PART.items()
    for word in ("--feature", f"{name}={feature.served_max}")
)
"""The options by which real Kafka's kafka-storage gives a cluster the levels that ours gives."""
QUICK: Final = {"broker.session.timeout.ms": "400", "broker.heartbeat.interval.ms": "100"}
"""A broker that was killed may register again once its old session is over: soon. A busy machine
fences such a broker now and then: a client has to ask again."""
ATTEMPTS: Final = 2
"""The number of tries to start a real node: where memory is short, Java dies now and then."""
COMBINED_HEAP_MB: Final = 384
_HEAP_MB: Final = 256
_REMARKS_LOGGER: Final = "kvorum.cli.server"
"""The logger of what a node says of its settings: the one thing said before its start."""
_ORDERLY_END: Final[dict[Kind, int]] = {"kvorum": 0, "kafka": 143}
"""The exit code of a node that was asked to stop with a signal: Java's tells of the signal."""


class Node:
    """A node and its process; as a context it runs, and is stopped in order at the end.

    It is real Kafka's if it is given a Java. Its server.properties is written when it is made:
    `settings` over those of a small combined node that is a cluster by itself. Other roles are
    a setting, `process.roles`.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        node_id: int = 1,
        java: Java | None = None,
        ports: Sequence[int] = (),
    ) -> None:
        self.folder = folder
        self.node_id = node_id
        self.kind: Kind = "kvorum" if java is None else "kafka"
        self.broker_port, self.controller_port = ports or free_ports(2)
        self._settings = settings
        self._java = java
        self.process = self._new_process()
        self.configure()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.broker_port}"

    @property
    def controller(self) -> str:
        return f"127.0.0.1:{self.controller_port}"

    @property
    def address(self) -> str:
        """The address of the node for clients: that of its broker, if it has one."""
        return self.broker if "broker" in self.settings()["process.roles"] else self.controller

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """The log directory that has the metadata log."""
        settings = self.settings()
        return Path(settings.get("metadata.log.dir") or settings["log.dirs"].split(",")[0])

    @property
    def metadata_log(self) -> Path:
        return self.data / LOG_DIRECTORY

    @property
    def first_segment(self) -> Path:
        return self.metadata_log / f"{0:020}.log"

    @property
    def identity(self) -> Mapping[str, str]:
        return load_java_properties((self.data / "meta.properties").read_bytes())

    @property
    def cluster_id(self) -> str:
        """Which cluster its directory belongs to."""
        return self.identity["cluster.id"]

    @property
    def directory_id(self) -> bytes:
        """The id of the log directory that has the metadata log, as it is now; 16 bytes."""
        return uuid_from_text(self.identity["directory.id"])

    @property
    def key(self) -> Key:
        return self.node_id, self.identity["directory.id"]

    @property
    def log_text(self) -> str:
        """All that it has said, in every one of its lives."""
        log = self._log
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""

    def settings(self, changes: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
        """Return what its server.properties holds, with these changes."""
        chosen = {"process.roles": COMBINED, **self._settings, **changes}
        listeners = {
            "broker": f"PLAINTEXT://{self.broker}",
            "controller": f"CONTROLLER://{self.controller}",
        }
        own = ",".join(text for role, text in listeners.items() if role in chosen["process.roles"])
        quorum = {"controller.quorum.bootstrap.servers": self.controller}
        return {
            "node.id": str(self.node_id),
            **({} if "controller.quorum.voters" in chosen else quorum),
            "controller.listener.names": "CONTROLLER",
            "listeners": own,
            "advertised.listeners": own,
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "num.network.threads": "2",
            "num.io.threads": "2",
            **chosen,
        }

    def configure(self, changes: Mapping[str, str] = MappingProxyType({})) -> None:
        """Write the server.properties again, with these changes."""
        write_properties(self.properties, self.settings(changes))

    def format(
        self,
        quorum: Sequence[str] = STANDALONE,
        *,
        cluster_id: str = CLUSTER_ID,
        tools: ToolRunner | None = None,
    ) -> Self:
        """Give its directories their identity: with ours, or with real Kafka's kafka-storage.

        `quorum` are the options that tell of the first voters; those of a static quorum have none.
        """
        identity = ("--cluster-id", cluster_id, "--config", str(self.properties))
        if tools is None:
            run_kvorum("storage", "format", *identity, *quorum)
        else:
            done = tools.run("kafka-storage", "format", *identity, *quorum)
            assert done.exit_code == 0, done.stdout + done.stderr
        return self

    def copy_to(self, folder: Path, settings: Mapping[str, str] | None = None) -> Node:
        """Return a node at the same addresses with a copy of the data.

        It has the settings of this one, or these instead.
        """
        node = Node(
            folder,
            self._settings if settings is None else settings,
            node_id=self.node_id,
            java=self._java,
            ports=(self.broker_port, self.controller_port),
        )
        shutil.copytree(self.data, node.data)
        return node

    def launch(self) -> None:
        """Start it and return at once: it may have to wait for others."""
        self.process.launch()

    def start(self) -> None:
        """Start it and return when it serves."""
        self.process.start()

    def stop(self) -> None:
        """Have it shut down in order, if it runs; one just launched may die at once.

        A real node that is still starting may also meet a fatal fault: it removes what it has not
        installed yet.
        """
        if self.process.is_launched:
            ended = self.process.terminate()
            # A process that has only spoken of its settings may not look after signals yet.
            is_before_start = all(_REMARKS_LOGGER in line for line in ended.lines)
            is_too_early = ended.exit_code == -signal.SIGTERM and is_before_start
            is_starting = self._java is not None and not ended.has_said(KAFKA_RUNS)
            is_orderly = ended.exit_code == _ORDERLY_END[self.kind]
            assert is_orderly or is_too_early or is_starting, self.process.last_words()

    def kill(self) -> None:
        """End it where it stands, if it runs."""
        if self.process.is_launched:
            self.process.kill()

    @property
    def _log(self) -> Path:
        # Not *.log, by which tools know a segment.
        return self.folder / "output.txt"

    def _new_process(self) -> NodeProcess:
        if self._java is None:
            return kvorum_server(self.properties, self._log)
        heap_mb = COMBINED_HEAP_MB if self.settings()["process.roles"] == COMBINED else _HEAP_MB
        command = self._java.command(
            "kafka.Kafka", str(self.properties), heap_mb=heap_mb, log_level="INFO"
        )
        return NodeProcess(command, self._log, ready=KAFKA_RUNS, attempts=ATTEMPTS)


class BothNodes(Protocol):
    """Runs a real node and one of ours, in this order, with the same settings."""

    def __call__(
        self, settings: Mapping[str, str] = MappingProxyType({})
    ) -> AbstractContextManager[tuple[Node, Node]]: ...


class Pair(NamedTuple):
    """Two formatted nodes, not running: 1 is the controller, 2 the broker."""

    controller: Node
    broker: Node


def make_pair(
    folder: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    *,
    java: Java | None = None,
    kinds: tuple[Kind, Kind] = ("kvorum", "kvorum"),
    broker_cluster_id: str = CLUSTER_ID,
) -> Pair:
    """Format the two; `kinds` are the controller's and the broker's."""
    below, above = (java if kind == "kafka" else None for kind in kinds)
    controller = Node(
        folder / "controller", {"process.roles": "controller", **settings}, java=below
    )
    quorum = {"controller.quorum.bootstrap.servers": controller.controller}
    broker = Node(
        folder / "broker", {"process.roles": "broker", **quorum, **settings}, node_id=2, java=above
    )
    return Pair(controller.format(), broker.format(NO_VOTERS, cluster_id=broker_cluster_id))
