"""`kvorum dump-log` beside kafka-dump-log on one metadata log, as whole processes."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final, NamedTuple

from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.node_start import RUN_CLASS_FLAGS
from benchmarks.report import Row
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java
from tests.support.resources import Memory

# Flags that bin/kafka-dump-log.sh and bin/kafka-run-class.sh of the release pass to Java.
DUMP_LOG_FLAGS: Final = ("-Xmx256M", *RUN_CLASS_FLAGS)
RUNS: Final = 3
PARTITIONS: Final = 1250
DECODED: Final = "--cluster-metadata-decoder"
OURS: Final = (sys.executable, "-m", "kvorum.cli", "dump-log")
_BYTES_PER_MIB: Final = 1 << 20
_LOOK_EVERY_S: Final = 0.1


class Run(NamedTuple):
    """The seconds that a command took, and the most memory of its processes, in MiB."""

    seconds: float
    peak_mib: float


def rows(*, records: int) -> list[Row]:
    java = Java(find_java(), JARS_ROOT / REFERENCE_RELEASE)
    name = "org.apache.kafka.tools.DumpLogSegments"
    theirs = [str(java.executable), *DUMP_LOG_FLAGS, "-cp", f"{java.jars}/*", name]
    with TemporaryDirectory() as folder:
        write_cluster(Path(folder) / "cluster", 1, records=records, partitions=PARTITIONS)
        segments = sorted(Path(folder).rglob("*.log"))
        files = ",".join(map(str, segments))
        small = _run([*OURS, DECODED, "--files", str(segments[0])])
        found: list[Row] = []
        for option in ("--files", DECODED):
            words = ["--files", files] if option == "--files" else [DECODED, "--files", files]
            pairs = [(_run([*OURS, *words]), _run([*theirs, *words])) for _ in range(RUNS)]
            mine, others = (_median(runs) for runs in zip(*pairs, strict=True))
            what = f"{records:,} records, {'decoded' if option == DECODED else 'batches only'}"
            peer = "kafka-dump-log"
            found.append(Row(what, peer, mine.seconds, others.seconds, "s"))
            found.append(Row(f"{what}, peak memory", peer, mine.peak_mib, others.peak_mib, "MiB"))
        share = segments[0].stat().st_size / sum(each.stat().st_size for each in segments)
        what = f"peak memory for all of it, decoded, beside {share:.0%} of it"
        found.append(Row(what, "kvorum dump-log", found[-1].ours, small.peak_mib, "MiB"))
        return found


def _median(runs: Iterable[Run]) -> Run:
    seconds, memory = zip(*runs, strict=True)
    return Run(statistics.median(seconds), statistics.median(memory))


def _run(command: list[str]) -> Run:
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        peaks = [0.0]
        watcher = Thread(target=_watch, args=(process, peaks))
        watcher.start()
        complaint = process.stderr.read()
        process.wait()
        seconds = time.perf_counter() - started
        watcher.join()
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {complaint!r}")
    return Run(seconds, max(peaks))


def _watch(process: subprocess.Popen[bytes], peaks: list[float]) -> None:
    """Add the most memory that the process and its children had, of all that live at a time."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        # A process may end at any time, and then has no memory.
        with suppress(OSError, AssertionError):
            pids = (process.pid, *map(int, children.read_text().split()))
            peaks.append(sum(Memory(pid).peak_bytes() for pid in pids) / _BYTES_PER_MIB)
        time.sleep(_LOOK_EVERY_S)
