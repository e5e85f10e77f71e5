"""How much processor time a process uses, as Linux tells."""

import os
import time
from pathlib import Path
from typing import Final

from tests.support.waiting import wait_for

QUIET_SHARE_MAX: Final = 0.1
"""What a node that nobody asks anything stays far below: it is a broker and a controller that send
each other heartbeats."""
_LOOK_S: Final = 0.3
_USER_TIME_FIELD: Final = 11
"""Of the fields behind the command's name, in brackets; the time of the system is the next one."""


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
    """Return the processor time that a process has used so far."""
    text = (Path("/proc") / str(pid) / "stat").read_text()
    fields = text.rpartition(")")[2].split()
    ticks = sum(map(int, fields[_USER_TIME_FIELD : _USER_TIME_FIELD + 2]))
    return ticks / os.sysconf("SC_CLK_TCK")
