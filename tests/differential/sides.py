"""The two controllers: one process each, alike in everything but whose they are."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.differential.messages import message_of
from tests.differential.metadata_log import LogRecord, LogTail
from tests.differential.script import API_KEYS, Body, Step
from tests.differential.users import UserStep, in_envelope, opened
from tests.differential.view import ClusterView
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kvorum_node import run_kvorum
from tests.unit.node.raw_client import RawClient

from kvorum.wire.apis import request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.json_form import Json, to_json

NODE_ID: Final = 3000
HEAP_MB: Final = 256
REGISTRATIONS_SINCE_LEVEL: Final = 15
START_TIMEOUT_S: Final = 90
STOP_TIMEOUT_S: Final = 30
POLL_INTERVAL_S: Final = 0.02
NO_ANSWER: Final = "the connection was closed without an answer"
# Nothing may be written but what a script asks for, and nobody waits to write more at once.
SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.append.linger.ms": "0",
    "metadata.max.idle.interval.ms": "0",
    "broker.session.timeout.ms": "120000",
    "broker.heartbeat.interval.ms": "30000",
    "auto.leader.rebalance.enable": "false",
    "unclean.leader.election.interval.ms": "36000000",
    "num.partitions": "2",
}


class Side:
    """One of the two controllers: its process, a connection to it, and what its log says."""

    def __init__(self, name: str, folder: Path, command: list[str]) -> None:
        self.name = name
        self.folder = folder
        (self.port,) = free_ports(1)
        self.view = ClusterView()
        self.log = LogTail(folder / "data")
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._client: RawClient | None = None
        self._source_host = ""

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> Path:
        """Its configuration."""
        return self.folder / "server.properties"

    @property
    def own_names(self) -> Mapping[str, str]:
        """Texts that only this side has, and how they are called."""
        return {self.address: "<address>", str(self.folder): "<folder>"}

    def write_settings(self, overrides: Mapping[str, str]) -> None:
        """Write its server.properties."""
        settings = {
            **SETTINGS,
            "listeners": f"CONTROLLER://{self.address}",
            "advertised.listeners": f"CONTROLLER://{self.address}",
            "controller.quorum.bootstrap.servers": self.address,
            "log.dirs": str(self.folder / "data"),
            **overrides,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self.properties.write_text(text, encoding="utf-8")

    def start(self) -> None:
        """Start the process."""
        with (self.folder / "node.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, str(self.properties)], stdout=log, stderr=log
            )

    def wait_until_active(self) -> None:
        """Return once the controller has written its own registration, or cannot write one."""
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            if self.log.path.exists():
                records = self.take_records()
                level = self.view.settings.features.get("metadata.version", 0)
                if 0 < level < REGISTRATIONS_SINCE_LEVEL and self._takes_connections():
                    return
                if any(record.type == "RegisterControllerRecord" for record in records):
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self.name} does not serve:\n{self.last_words()}")
            time.sleep(POLL_INTERVAL_S)

    def _takes_connections(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=START_TIMEOUT_S).close()
        except ConnectionRefusedError:
            return False
        return True

    def wait_until_leading(self) -> None:
        """Return once the controller takes requests: an error may have made it start again."""
        deadline = time.monotonic() + START_TIMEOUT_S
        stranger = {"brokerId": 2**31 - 1, "brokerEpoch": -1}
        while True:
            answer = self.ask("BrokerHeartbeat", stranger)
            if not isinstance(answer, Mapping):
                raise ConnectionResetError(f"{self.name}: {NO_ANSWER}")
            if answer["errorCode"] == ErrorCode.STALE_BROKER_EPOCH:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} does not lead:\n{self.last_words()}")
            time.sleep(POLL_INTERVAL_S)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def last_words(self) -> str:
        """Return the end of what the process printed."""
        return self.whole_log()[-6000:]

    def whole_log(self) -> str:
        """Return everything the process printed."""
        return (self.folder / "node.log").read_text(encoding="utf-8", errors="replace")

    def ends_within(self, timeout_s: float) -> bool:
        """Tell whether the process ends by itself."""
        assert self._process is not None
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Stop the process in order; by force when that takes too long."""
        if self._client is not None:
            self._client.socket.close()
            self._client = None
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def connect_from(self, source_host: str) -> None:
        """Go on by a new connection, from another address of this machine."""
        self._source_host = source_host
        if self._client is not None:
            self._client.socket.close()
            self._client = None

    def hang_up(self) -> None:
        """Close the connection, so that the next request comes on a new one."""
        if self._client is not None:
            self._client.socket.close()
            self._client = None

    def send(self, step: Step) -> Body:
        """Send the request of a step and return its body with this side's values in it."""
        if self._client is None:
            self._client = RawClient(self.address, source_host=self._source_host)
        body: Body = self.view.resolve(step.body)
        request = message_of(request_class(step.key), body, step.version)
        if isinstance(step, UserStep):
            self._client.send(in_envelope(step, request), 0)
        else:
            self._client.send(request, step.version)
        return body

    def receive(self, step: Step) -> Json:
        """Return the answer to what was sent last."""
        assert self._client is not None
        frame = self._client.read_frame()
        if frame is None:
            self._client.socket.close()
            self._client = None
            return NO_ANSWER
        if isinstance(step, UserStep):
            return opened(step, frame)
        kind = response_class(step.key)
        _, response = decode_response_frame(frame, response_class=kind, version=step.version)
        return to_json(response, step.version)

    def ask(self, api: str, body: Body) -> Json:
        """Send a request of the newest version and return the answer."""
        step = Step(api, request_class(API_KEYS[api]).MAX_VERSION, body)
        self.send(step)
        return self.receive(step)

    def take_records(self) -> list[LogRecord]:
        """Return what was written since the last call, and take it into the view."""
        records = self.log.read()
        self.view.fold(records)
        others = without_own_registration(records)
        if others:
            self.view.end_offset = others[-1].offset + 1
        return records


def without_own_registration(records: Sequence[LogRecord]) -> list[LogRecord]:
    """Leave out the controller's registration of itself, which comes when it comes."""
    return [
        record
        for record in records
        if not (
            record.type == "RegisterControllerRecord" and record.data["controllerId"] == NODE_ID
        )
    ]


def start_sides(
    folder: Path,
    java: Java,
    *,
    overrides: Mapping[str, str],
    release: str | None,
    prepare: Callable[[Path], None] | None = None,
) -> tuple[Side, Side]:
    """Format one directory, start both controllers on a copy of it each; the real one first.

    `prepare` is called with the formatted directory before it is copied.
    """
    kafka = java.command("kafka.Kafka", heap_mb=HEAP_MB, log_level="INFO")
    real = Side("real", folder / "real", kafka)
    ours = Side("ours", folder / "ours", [sys.executable, "-m", "kvorum.cli", "server"])
    for side in (real, ours):
        side.write_settings(overrides)
    cluster_id = run_kvorum("storage", "random-uuid").strip()
    level = () if release is None else ("--release-version", release)
    properties = str(real.properties)
    run_kvorum("storage", "format", "-t", cluster_id, "--standalone", "-c", properties, *level)
    if prepare is not None:
        prepare(real.folder / "data")
    shutil.copytree(real.folder / "data", ours.folder / "data")
    for side in (real, ours):
        side.view.cluster_id = cluster_id
        side.start()
    return real, ours
