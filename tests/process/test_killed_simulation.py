"""Nothing of a simulation goes on after it was killed."""

import subprocess
from pathlib import Path

from tests.support.node_process import KVORUM
from tests.support.waiting import wait_for

MANY = ("simulate", "--only", "brokers", "--seeds", "1000", "--jobs", "2")
"""Worlds for many minutes, in two processes beside the command's own."""


def children_of(pid: int) -> list[Path]:
    """Return the directories of a process's children in /proc."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [Path("/proc", child) for child in listed.split()]


def is_simulating(process: Path) -> bool:
    """Return whether a process is one of the pool's."""
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
