"""What starts, watches and ends the processes of nodes, with small programs in their place."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.listening_program import program
from tests.support.node_process import StartedAgainWarning
from tests.support.ports import free_ports
from tests.support.waiting import wait_for

A_RUN = """
import time
from tests.support.listening_program import LISTENS, program
print(program(LISTENS).start().lines()[0], flush=True)
time.sleep(600)
"""
STAYS = "import time; print('up', flush=True); time.sleep(600)"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


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


def test_one_that_may_is_started_once_more_and_that_is_reported(tmp_path: Path) -> None:
    has_run = tmp_path / "ran"
    text = f"import pathlib; p = pathlib.Path({str(has_run)!r})\nif p.exists(): {STAYS}\np.touch()"
    with pytest.warns(StartedAgainWarning, match="it ended before"), program(text, attempts=2):
        assert has_run.exists()


def test_no_process_outlives_a_run_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", A_RUN], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        port = int(run.stdout.readline().removeprefix("up "))
        assert listens(port)
        run.kill()
    wait_for(lambda: not listens(port), "the process that the run had started is gone")


def test_no_port_is_given_out_twice() -> None:
    ports = free_ports(200)
    assert len({*ports, *free_ports(200)}) == 400
