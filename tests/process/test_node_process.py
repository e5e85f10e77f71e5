"""The processes of nodes are started, watched and ended, with small programs in their place."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.support.kafka.java import Java
from tests.support.node import Node
from tests.support.node_process import KAFKA_RUNS, NodeProcess, StartedAgainWarning
from tests.support.ports import free_ports, listens
from tests.support.source_tree import ROOT
from tests.support.topics import create
from tests.support.waiting import PATIENCE_S, NeverCameAboutError, wait_for

LISTENS = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print("up", server.getsockname()[1], flush=True)
time.sleep(600)
"""
A_RUN = f"""
import sys, time
from tests.support.node_process import NodeProcess
process = NodeProcess([sys.executable, "-c", {LISTENS!r}], ready="up")
print(process.start().lines()[0], flush=True)
time.sleep(600)
"""
ASKS_FOR_PORTS = """
import json, sys
from tests.support.ports import free_ports
print(json.dumps(free_ports(500)), flush=True)
sys.stdin.read()
"""
STAYS = "import time; print('up', flush=True); time.sleep(600)"
SAYS = "import time; print({line!r}, flush=True); time.sleep(600)"
HALF_A_LINE = """
print("up")
print("half", end="", flush=True)
open({gate!r}).read()
print(" and whole", flush=True)
import time
time.sleep(600)
"""
HANGS = "import time; print('almost', flush=True); time.sleep(600)"
IGNORES_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {STAYS}"
DYING_JAVA = f"""#!/bin/sh
cd "$(dirname "$0")"
echo $$ >> pids
if [ "$(wc -l < pids)" -gt "$(cat deaths)" ]; then
    echo "{KAFKA_RUNS}"
    exec sleep 600
fi
echo "no memory for the heap"
exit 1
"""
"""In place of Java: it dies as often as the file beside it says, and stays after that."""
SHORT_S = 0.1


def program(text: str, log: Path | None = None, attempts: int = 1) -> NodeProcess:
    return NodeProcess([sys.executable, "-c", text], log, ready="up", attempts=attempts)


def dying_java(folder: Path, *, deaths: int) -> Java:
    """Return a Java whose processes die while they start."""
    executable = folder / "java"
    executable.write_text(DYING_JAVA)
    executable.chmod(0o755)
    (folder / "deaths").write_text(str(deaths))
    return Java(executable, folder)


def pids_of_java(folder: Path) -> list[int]:
    """Return every process that a Java which dies had."""
    return [int(line) for line in (folder / "pids").read_text().splitlines()]


def is_there(pid: int) -> bool:
    """Tell whether there is such a process, be it one without a waiting parent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_tells_what_it_said_and_how_it_ended() -> None:
    process = program("print('up\\nlast'); raise SystemExit(3)")
    ended = process.run_to_end()
    assert (ended.exit_code, ended.lines, ended.last_line) == (3, ("up", "last"), "last")
    assert not process.is_launched


def test_every_life_has_its_own_lines_and_the_log_has_all(tmp_path: Path) -> None:
    process = program(STAYS, tmp_path / "log")
    for _ in range(2):
        with process:
            assert process.lines() == ("up",)
            assert process.terminate().exit_code == -signal.SIGTERM
    assert (tmp_path / "log").read_text() == "up\nup\n"


def test_one_that_ends_before_it_is_ready_is_a_failure_that_shows_its_last_words() -> None:
    with pytest.raises(AssertionError, match="no room"):
        program("raise SystemExit('no room')").start()


def test_a_line_of_which_half_is_there_is_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with program(HALF_A_LINE.format(gate=str(gate))) as process:
        process.wait_until(lambda: "half" in process.lines(), "half a line is there")
        process.patience_s = SHORT_S
        with pytest.raises(NeverCameAboutError):
            process.wait_for_line("half")
        process.patience_s = PATIENCE_S
        # The process goes on once the pipe is open at both ends.
        gate.write_text("")
        assert process.wait_for_line("half") == "half and whole"


def node_that_says(line: str, folder: Path) -> Node:
    """Return a node whose process says this and does not look after signals."""
    node = Node(folder)
    node.process = NodeProcess([sys.executable, "-c", SAYS.format(line=line)], ready=line)
    return node


def test_a_node_that_has_only_spoken_of_its_settings_may_die_of_a_signal(tmp_path: Path) -> None:
    with node_that_says("INFO a remark (kvorum.cli.server)", tmp_path):
        pass


def test_a_node_that_has_begun_to_start_may_not_die_of_a_signal(tmp_path: Path) -> None:
    node = node_that_says("INFO an event (kvorum.node.events)", tmp_path)
    node.start()
    with pytest.raises(AssertionError, match="an event"):
        node.stop()


def test_one_that_hangs_in_its_start_is_killed_and_shows_what_it_said() -> None:
    process = program(HANGS)
    process.launch()
    pid = process.pid
    process.wait_for_line("almost")
    process.patience_s = SHORT_S
    with pytest.raises(NeverCameAboutError, match=r"it says 'up'(?s:.*)said last:\nalmost"):
        process.come_up()
    assert not is_there(pid)


def test_one_that_ignores_sigterm_is_killed_and_that_is_a_failure() -> None:
    with program(IGNORES_SIGTERM) as process:
        pid = process.pid
        process.patience_s = SHORT_S
        with pytest.raises(AssertionError, match=r"it does not end; (?s:.*)said last:\nup"):
            process.terminate()
        assert not is_there(pid)


def test_a_server_whose_port_is_taken_names_it_in_the_failure(node: Node) -> None:
    with socket.create_server(("127.0.0.1", node.broker_port)):
        process = node.process
        process.launch()
        pid = process.pid
        with pytest.raises(AssertionError, match=f"port {node.broker_port} is taken by another"):
            process.come_up()
    assert not is_there(pid)


def test_a_server_whose_disk_becomes_full_ends_the_wait_of_the_test(
    node_on_disk: Node, disk: Path
) -> None:
    with node_on_disk.process as process:
        pid = process.pid
        with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4096))
        with suppress(OSError, AssertionError):
            create(node_on_disk.broker, *(f"{'x' * 200}-{number}" for number in range(100)))
        with pytest.raises(AssertionError, match=r"it ended before (?s:.*)No space left on device"):
            process.wait_until(lambda: None, "the topics are there")
    assert not is_there(pid)


def test_a_java_that_dies_in_its_start_is_started_once_more_and_that_is_reported(
    tmp_path: Path,
) -> None:
    process = Node(tmp_path, java=dying_java(tmp_path, deaths=1)).process
    with pytest.warns(StartedAgainWarning, match="no memory for the heap"):
        process.start()
    first, second = pids_of_java(tmp_path)
    assert process.pid == second
    process.kill()
    assert not is_there(first)
    assert not is_there(second)


def test_a_java_that_dies_twice_is_a_failure_that_shows_its_last_words(tmp_path: Path) -> None:
    process = Node(tmp_path, java=dying_java(tmp_path, deaths=2)).process
    with (
        pytest.warns(StartedAgainWarning, match="no memory for the heap"),
        pytest.raises(AssertionError, match="no memory for the heap"),
    ):
        process.start()
    first, second = pids_of_java(tmp_path)
    assert not is_there(first)
    assert not is_there(second)


def test_no_process_outlives_a_run_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", A_RUN], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        address = f"127.0.0.1:{run.stdout.readline().split()[1]}"
        assert listens(address)
        run.kill()
    wait_for(lambda: not listens(address), "the process that the run had started is gone")


def test_no_port_is_given_out_twice() -> None:
    assert len({*free_ports(200), *free_ports(200)}) == 400


def test_no_port_is_given_out_by_two_processes() -> None:
    """Also where each is the first of its run, and no program listens at any of the ports."""
    command = [sys.executable, "-c", ASKS_FOR_PORTS]
    with ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(2)
        ]
        first, second = (set(json.loads(one.stdout.readline())) for one in both if one.stdout)
        for one in both:
            one.communicate()
    assert len(first) == len(second) == 500
    assert first & second == set()
