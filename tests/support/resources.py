"""The resources of a process: memory, processor time and connections, as Linux tells."""

import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support.waiting import wait_for


def _folder_of(pid: int) -> Path:
    """Return where Linux tells of a process; elsewhere the test is skipped."""
    if sys.platform != "linux":
        pytest.skip("the resources of another process are read from Linux' /proc")
    return Path("/proc") / str(pid)


class Memory:
    def __init__(self, pid: int) -> None:
        self._folder = _folder_of(pid)
        self._status = self._folder / "status"

    def resident_bytes(self) -> int:
        return self._field("VmRSS")

    def peak_bytes(self) -> int:
        return self._field("VmHWM")

    def forget_peak(self) -> None:
        """Let `peak_bytes` be the most from now on."""
        (self._folder / "clear_refs").write_text("5")

    def _field(self, name: str) -> int:
        for line in self._status.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"there is no {name} in {self._status}")


QUIET_SHARE_MAX: Final = 0.1
"""A bound far above an idle node: it is a broker and a controller that send
each other heartbeats."""
_LOOK_S: Final = 0.3
_USER_TIME_FIELD: Final = 11
"""Of the fields after the command's name, in brackets; the time of the system is the next one."""


def _processor_share(pid: int, seconds: float) -> float:
    """Return the share of a processor that a process uses within the next `seconds`."""
    used = processor_seconds(pid)
    # Nothing else is waited for: that nothing happens is what is to be seen.
    time.sleep(seconds)
    return (processor_seconds(pid) - used) / seconds


def wait_until_quiet(pid: int, seconds: float = _LOOK_S) -> float:
    """Return the share of a processor that a process uses once it has done all it was asked for.

    Nobody else tells when that is. The share is next to nothing for as long as `seconds`.
    """

    def look() -> float | None:
        share = _processor_share(pid, seconds)
        return share if share <= QUIET_SHARE_MAX else None

    return wait_for(look, f"a process uses no more than {QUIET_SHARE_MAX} of a processor")


def processor_seconds(pid: int) -> float:
    fields = (_folder_of(pid) / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_USER_TIME_FIELD : _USER_TIME_FIELD + 2])) / os.sysconf("SC_CLK_TCK")


WANTED = 10_000


DESCRIPTORS_FOR_THE_REST = 300


@pytest.fixture
def connection_count() -> Iterator[int]:
    """As many connections as this process may have, up to the wanted ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(WANTED, hard - DESCRIPTORS_FOR_THE_REST)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
