"""A broker with many partitions: how soon it serves all of them again, and its memory.

A record is appended to every partition before each stop, so that each has something new on disk.
"""

import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.data.perf_tools import median_rows
from benchmarks.data.raw_records import (
    connected,
    create_topics,
    produce_to_each,
    topic_names,
    wait_for_end_offsets,
)
from benchmarks.node_start import (
    Candidate,
    ConfiguredNode,
    configured,
    kafka_nodes,
    kvorum_node,
    resident_mib,
)
from benchmarks.report import Row

SIZES: Final = (2_000, 10_000)
STARTS: Final = 3
STOP_S_MAX: Final = 300.0
VALUE: Final = bytes(1000)


@dataclass
class Figures:
    """The figures of one candidate with one number of partitions."""

    clean_s: list[float] = field(default_factory=list[float])
    killed_s: list[float] = field(default_factory=list[float])
    memory_mib: list[float] = field(default_factory=list[float])


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of partitions are divided."""
    ours, peer = kvorum_node(), kafka_nodes()[0]
    found: list[Row] = []
    for size in (size // divisor for size in SIZES):
        mine, theirs = (_measure(candidate, size) for candidate in (ours, peer))
        wanted = (
            (f"start with {size:,} partitions after a clean stop", "s", "clean_s"),
            (f"start with {size:,} partitions after kill -9", "s", "killed_s"),
            (f"resident memory with {size:,} partitions", "MiB", "memory_mib"),
        )
        found += median_rows(wanted, peer.name, mine, theirs)
    return found


def _measure(candidate: Candidate, size: int) -> Figures:
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        node = configured(candidate, Path(folder))
        subprocess.run(node.format_command, check=True, capture_output=True)
        _Life(node, topic_names(size), figures).live()
    return figures


class _Life:
    """One node that is started again and again on the same directory."""

    def __init__(self, node: ConfiguredNode, names: list[str], figures: Figures) -> None:
        self._node, self._names, self._figures = node, names, figures
        self._address = f"{node.address.host}:{node.address.port}"
        self._records = 0

    def live(self) -> None:
        process, _ = self._start(names=[])
        try:
            with connected(self._address) as client:
                create_topics(client, self._names)
            wait_for_end_offsets(self._address, self._names, expected=0)
            self._append()
            for number in range(2 * STARTS):
                is_killed = number % 2 == 1
                process.send_signal(signal.SIGKILL if is_killed else signal.SIGTERM)
                process.wait(STOP_S_MAX)
                process, took_s = self._start(self._names)
                (self._figures.killed_s if is_killed else self._figures.clean_s).append(took_s)
                self._append()
                self._figures.memory_mib.append(resident_mib(process.pid))
        finally:
            process.kill()
            process.wait()

    def _start(self, names: list[str]) -> tuple[subprocess.Popen[bytes], float]:
        """Return the process and the seconds until it served every partition."""
        begun = time.perf_counter()
        process = subprocess.Popen(
            self._node.run_command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            served = wait_for_end_offsets(self._address, names, expected=self._records)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process, served - begun

    def _append(self) -> None:
        with connected(self._address) as client:
            produce_to_each(client, self._names, value=VALUE)
        self._records += 1
