"""Processes that are asked to stop, or killed, or lose each other: all can be gone on with."""

import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.node import (
    CLUSTER_ID,
    NO_VOTERS,
    OTHER_CLUSTER_ID,
    QUICK,
    STANDALONE,
    Node,
    Pair,
    make_pair,
)
from tests.support.node_process import KVORUM, RUNS
from tests.support.ports import listens
from tests.support.topics import create, read_topics, wait_for_topics, wait_until_served
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.node.version import VERSION
from kvorum.wire.error_codes import ErrorCode

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
ENDED_BY_SIGTERM = 128 + signal.SIGTERM
WAITS = "The broker waits for the active controller to let it leave"
EPOCH = re.compile(r"The broker is registered broker=1 epoch=(\d+)")
IMPATIENT = {"initial.broker.registration.timeout.ms": "5000"}
ROUNDS = 10
WRITING_TAKES_S = 0.006
MANY = ("simulate", "--only", "brokers", "--seeds", "1000", "--jobs", "2")
"""Worlds for many minutes, in two processes beside the command's own."""


def _epoch(line: str) -> int:
    found = EPOCH.search(line)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_in_order(node: Node, number: signal.Signals) -> None:
    epochs: list[int] = []
    for start in range(3):
        with node.process as process:
            assert not (node.data / CLEAN_SHUTDOWN).exists(), "a crash would go unnoticed"
            epochs.append(_epoch(process.wait_for_line("broker is registered")))
            assert create(node.broker, f"topic-{start}") == [ErrorCode.NONE]
            process.send(number)
            ended = process.wait()
        assert ended.exit_code == 0
        assert not [line for line in ended.lines if "ERROR" in line or "Traceback" in line]
        assert str(epochs[-1]) in (node.data / CLEAN_SHUTDOWN).read_text()
        # The old registration was gone: no start had to wait for a session to end.
        assert not [line for line in ended.lines if "refused" in line]
    assert epochs == sorted(set(epochs))
    with node.process:
        assert read_topics(node.broker).keys() == {"topic-0", "topic-1", "topic-2"}


def test_a_stop_asked_for_while_it_starts(node: Node) -> None:
    """Whenever the signal comes, the process ends at once and the next start succeeds."""
    process = node.process
    process.launch()
    process.wait_for_line("Became the active controller")
    assert process.terminate().exit_code == 0
    with node.process:
        assert create(node.broker, "topic") == [ErrorCode.NONE]


def test_a_stop_asked_for_twice(node: Node) -> None:
    with node.process as process:
        process.send(signal.SIGTERM)
        process.send(signal.SIGTERM)
        ended = process.wait()
    # The second signal may come together with the first.
    assert ended.exit_code in {0, ENDED_BY_SIGTERM}
    assert not [line for line in ended.lines if "ERROR" in line or "Traceback" in line]
    assert (node.data / CLEAN_SHUTDOWN).exists()


def test_a_killed_node_leaves_no_mark_of_a_clean_stop(node: Node) -> None:
    with node.process as process:
        assert process.kill().exit_code == -signal.SIGKILL
    assert not (node.data / CLEAN_SHUTDOWN).exists()


def _kill_while_it_writes(command: list[str], data: Path, *, delay_s: float) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    # Writing takes milliseconds: a test that sleeps here comes too late.
    while not data.exists() and process.poll() is None:
        assert time.monotonic() < deadline, "it never begins to write"
    moment = time.perf_counter() + delay_s
    while time.perf_counter() < moment:
        pass
    process.kill()
    process.wait()


@pytest.mark.slow
def test_a_format_that_was_killed_is_run_again(tmp_path: Path) -> None:
    dice = random.Random(5)
    for number in range(ROUNDS):
        node = Node(tmp_path / str(number))
        command = [*KVORUM, "storage", "format", "--config", str(node.properties)]
        command += ["--cluster-id", CLUSTER_ID, *STANDALONE]
        _kill_while_it_writes(command, node.data, delay_s=dice.random() * WRITING_TAKES_S)
        was_done = (node.data / "meta.properties").exists()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        if was_done:
            assert "is already formatted" in again.stderr
        else:
            assert again.returncode == 0, again.stderr
        with node.process:
            assert create(node.broker, "topic") == [ErrorCode.NONE]


def children_of(pid: int) -> list[Path]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [Path("/proc", child) for child in listed.split()]


def is_simulating(process: Path) -> bool:
    try:
        return b"spawn_main" in (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_processes_of_a_killed_simulation_end() -> None:
    command = subprocess.Popen([*KVORUM, *MANY], stdout=subprocess.DEVNULL)
    try:
        pool = wait_for(
            lambda: (
                found
                if len(found := [one for one in children_of(command.pid) if is_simulating(one)])
                == 2
                else None
            ),
            "two processes simulate",
        )
    finally:
        command.kill()
        command.wait()
    wait_for(lambda: not any(map(is_simulating, pool)), "they have ended", otherwise=lambda: pool)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_pair(tmp_path, QUICK)


def test_what_is_asked_of_the_broker_the_controller_does(pair: Pair) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker.address, "one", "two") == [ErrorCode.NONE] * 2
        wait_for_topics(pair.broker.address, "one", "two")
        pair.broker.stop()
        with pair.broker:
            wait_for_topics(pair.broker.address, "one", "two")
            pair.broker.kill()
        with pair.broker:
            wait_for_topics(pair.broker.address, "one", "two")
            assert create(pair.broker.address, "three") == [ErrorCode.NONE]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_a_broker_outlives_its_controller(pair: Pair, *, is_killed: bool) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker.address, "before") == [ErrorCode.NONE]
        if is_killed:
            pair.controller.kill()
        else:
            pair.controller.stop()
        # The broker goes on answering from what it knows.
        wait_until_served(pair.broker.address)
        with pair.controller:
            # Forwarded once the broker has found the controller again.
            assert create(pair.broker.address, "after") == [ErrorCode.NONE]
            wait_for_topics(pair.broker.address, "before", "after")
            pair.broker.stop()


def test_a_broker_without_controllers_says_what_it_waits_for_until_a_second_signal(
    pair: Pair,
) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker.address, "topic") == [ErrorCode.NONE]
        pair.controller.kill()
        process = pair.broker.process
        process.send(signal.SIGTERM)
        line = process.wait_for_line(WAITS)
        assert re.search(r"waited_s=\d+ waits_at_most_s=300", line)
        assert process.wait_for_line("no active controller answered")
        process.send(signal.SIGTERM)
        ended = process.wait()
        assert ended.exit_code == ENDED_BY_SIGTERM
        assert ended.has_said("A second signal: the stop waits for no other node signal=SIGTERM")
        assert not [line for line in ended.lines if "ERROR" in line or "Traceback" in line]
        # All it has is on disk, as after every stop in order.
        assert (pair.broker.data / CLEAN_SHUTDOWN).exists()
        with pair.controller, pair.broker:
            wait_for_topics(pair.broker.address, "topic")


def test_a_broker_that_waits_for_its_controller_leaves_when_that_is_back(pair: Pair) -> None:
    with pair.controller, pair.broker:
        pair.controller.kill()
        pair.broker.process.send(signal.SIGTERM)
        pair.broker.process.wait_for_line(WAITS)
        with pair.controller:
            assert pair.broker.process.wait().exit_code == 0


def test_a_broker_may_start_before_its_controller(pair: Pair) -> None:
    pair.broker.launch()
    try:
        pair.broker.process.wait_for_line("cannot be reached")
        with pair.controller:
            pair.broker.process.wait_for_line(RUNS)
            assert create(pair.broker.address, "topic") == [ErrorCode.NONE]
    finally:
        pair.broker.kill()


def test_a_broker_of_another_cluster_is_not_let_in(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, IMPATIENT, broker_cluster_id=OTHER_CLUSTER_ID)
    with pair.controller:
        ended = pair.broker.process.run_to_end()
        assert ended.exit_code == 1
        assert ended.last_line.startswith("kvorum server: ")
        assert "INCONSISTENT_CLUSTER_ID" in ended.last_line
        pair.controller.stop()


def test_a_broker_with_the_id_of_another_one_ends_with_the_address_of_that_one(
    pair: Pair, tmp_path: Path
) -> None:
    settings = {**pair.broker.settings(), **IMPATIENT}
    for key in ("listeners", "advertised.listeners", "log.dirs"):
        del settings[key]
    twin = Node(tmp_path / "twin", settings, node_id=pair.broker.node_id).format(NO_VOTERS)
    with pair.controller, pair.broker:
        ended = twin.process.run_to_end()
    assert ended.exit_code == 1
    assert f"the broker at {pair.broker.broker} has the same node.id" in ended.last_line
    assert [line for line in ended.lines if "WARN" in line and pair.broker.broker in line]


def test_the_first_line_of_a_node_says_what_starts(node: Node) -> None:
    with node.process as process:
        first = process.wait_for_line("A node starts")
    assert first == node.log_text.splitlines()[0]
    for word in (f"version={VERSION}", "roles=broker,controller", node.broker, str(node.data)):
        assert word in first


def test_nothing_below_the_level_of_the_log_is_logged(node: Node) -> None:
    node.configure({"kvorum.log.level": "error"})
    process = node.process
    process.launch()
    process.wait_until(lambda: listens(node.broker) or None, "it listens")
    wait_until_served(node.broker)
    assert not process.terminate().lines
