"""The growth of `kvorum pipeline`: a fleet of many records beside one of a tenth of them.

A run is a process of its own with a local session of Spark on every core, by the clock. Its memory
is the most that one Python process and one Java process of the run ever took.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.fleet.cluster_log import CLUSTERS, write_fleet
from benchmarks.report import Row

GROWTH: Final = 10
RUNS: Final = 3
_SAMPLE_INTERVAL_S: Final = 0.2
_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Run:
    """The cost of one run: seconds, and MiB of its largest Python and Java process."""

    seconds: float
    python_mib: float
    java_mib: float


def rows(*, records: int) -> list[Row]:
    samples: list[tuple[Run, Run, Run]] = []
    with TemporaryDirectory() as folder:
        large, small = Path(folder) / "large", Path(folder) / "small"
        write_fleet(large, records=records)
        write_fleet(small, records=records // GROWTH)
        for number in range(RUNS):
            taken = _pipeline(large, number), _pipeline(small, number), _pipeline(large, number)
            print(*taken, sep="\n", file=sys.stderr)
            samples.append(taken)
    many, few, again = (_median(runs) for runs in zip(*samples, strict=True))
    what = f"kvorum pipeline, {records:,} records of {CLUSTERS} clusters, local"
    of_few = f"{records // GROWTH:,} records"
    return [
        Row(
            what,
            f"{GROWTH} times as long as {of_few} take",
            many.seconds,
            few.seconds * GROWTH,
            "s",
        ),
        Row("  its largest Python process", of_few, many.python_mib, few.python_mib, "MiB"),
        Row("  its Java process", of_few, many.java_mib, few.java_mib, "MiB"),
        Row("  again, without news", "the first run", again.seconds, many.seconds, "s"),
    ]


def _median(runs: Sequence[Run]) -> Run:
    return Run(
        statistics.median(run.seconds for run in runs),
        statistics.median(run.python_mib for run in runs),
        statistics.median(run.java_mib for run in runs),
    )


def _pipeline(fleet: Path, number: int) -> Run:
    output = fleet.with_name(f"{fleet.name}-tables-{number}")
    command = [sys.executable, "-m", "kvorum.cli", "pipeline"]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--input", str(fleet), "--output", str(output)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    python_kib = java_kib = 0
    while process.poll() is None:
        for name, peak_kib in _peaks_of_session(process.pid):
            if name.startswith("python"):
                python_kib = max(python_kib, peak_kib)
            elif name == "java":
                java_kib = max(java_kib, peak_kib)
        time.sleep(_SAMPLE_INTERVAL_S)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return Run(seconds, python_kib / _MIB, java_kib / _MIB)


def _peaks_of_session(session: int) -> Iterable[tuple[str, int]]:
    """Return the name and the most memory, in KiB, of each process of a session (Linux)."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            status = (folder / "status").read_text()
        except OSError:
            continue  # It ended meanwhile.
        if int(stat.rpartition(")")[2].split()[3]) != session:
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "VmHWM" in fields:
            yield fields["Name"].strip(), int(fields["VmHWM"].split()[0])
