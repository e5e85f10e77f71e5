"""Large logs that several processes dump in turns: the same output, gaps and errors."""

import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from struct import Struct
from typing import IO

import pytest
from tests.support.dump_log import decoder_of
from tests.support.waiting import wait_for

from kvorum.cli.dump.log_dump import PART_BYTES as USUAL_PART_BYTES
from kvorum.cli.dump.log_dump import log_parts
from kvorum.cli.dump.processes import WORTH_PROCESSES_BYTES, usable_cores
from kvorum.wire.records import BatchOptions, RecordData, build_batch
from kvorum.wire.records.legacy import read_entries

PROGRAM = Path(__file__).with_name("dumping_program.py")
LOG = "00000000000000000000.log"
OPTIONS = (
    ("--cluster-metadata-decoder",),
    ("--offsets-decoder",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--deep-iteration",),
    ("--max-bytes", "2000"),
    (),
)
LOGS_MAX = 10
INT = Struct("i")
PART_BYTES = 300


def printed(count: int, logs: Sequence[Path], words: Sequence[str]) -> list[str]:
    """Return the lines that so many processes print."""
    command = [sys.executable, str(PROGRAM), str(count), str(PART_BYTES), ",".join(map(str, logs))]
    return subprocess.run(
        [*command, *words], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split("\n")


def damaged(path: Path, random: Random, target: Path) -> Path:
    """Write a log with a damage: bytes flipped, cut out or doubled."""
    data = bytearray(path.read_bytes())
    place = random.randrange(len(data))
    match random.randrange(3):
        case 0:
            data[place] ^= 1 << random.randrange(8)
        case 1:
            del data[place : place + random.randrange(1, 200)]
        case _:
            data[place:place] = data[place : place + random.randrange(1, 200)]
    target.parent.mkdir()
    target.write_bytes(data)
    return target


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_turns_give_what_one_process_gives(
    golden_sets: Path, tmp_path: Path, words: tuple[str, ...], count: int
) -> None:
    random = Random(count)
    fitting = words[0] if words and words[0].endswith("-decoder") else None
    logs = [
        path
        for path in sorted(golden_sets.rglob("*.log"))
        if path.stat().st_size and fitting in {None, decoder_of(path)}
    ][:LOGS_MAX]
    logs += [damaged(path, random, tmp_path / str(at) / LOG) for at, path in enumerate(logs)]
    expected = printed(1, logs, words)
    assert printed(count, logs, words) == expected
    gaps = {line for line in expected if line.startswith("gaps")}
    # Batches alone show no gaps, nor damage within them.
    if words and words[0] not in {"--offsets-decoder", "--max-bytes"}:
        assert len(gaps) > 1
        assert any(line.startswith("error") for line in expected)


@pytest.mark.parametrize("part_bytes", [1, 100, 1000, 10**9])
def test_parts_are_whole_batches_one_after_the_other(golden_sets: Path, part_bytes: int) -> None:
    for path in sorted(golden_sets.rglob("*.log")):
        data = memoryview(path.read_bytes())
        parts = list(log_parts(data, part_bytes))
        assert (parts[0].begin, parts[-1].end) == (0, len(data))
        assert [part.end for part in parts[:-1]] == [part.begin for part in parts[1:]]
        assert {part.begin for part in parts} <= {
            0,
            *(entry.position for entry in read_entries(data, is_cut_allowed=True)),
        }
        assert all(part.end - part.begin >= part_bytes for part in parts[:-1])


def large_log(folder: Path) -> Path:
    """Write a log that is worth processes."""
    batch = build_batch([RecordData(b"k", b"v" * 8000)] * 100, BatchOptions())
    path = folder / LOG
    path.write_bytes(batch * (WORTH_PROCESSES_BYTES // len(batch) + 1))
    return path


def commands(pids: set[int]) -> dict[int, str]:
    return {
        pid: command
        for pid in pids
        if (path := Path(f"/proc/{pid}/cmdline")).exists()
        and (command := path.read_text().replace("\0", " "))
    }


def started_workers(pid: int) -> set[int] | None:
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return set(commands(set(children))) or None


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows the processes of a process")
@pytest.mark.skipif(usable_cores() == 1, reason="one core is used by one process")
@pytest.mark.parametrize("is_worker_killed", [False, True], ids=["the command", "a worker"])
def test_processes_that_are_killed_leave_nothing_behind(
    tmp_path: Path, *, is_worker_killed: bool
) -> None:
    command = [sys.executable, "-m", "kvorum.cli", "dump-log", "--print-data-log", "--files"]
    with (tmp_path / "complaint").open("w+") as complaint:
        # The output is not read until the kill: the command cannot end before.
        with subprocess.Popen(
            [*command, str(large_log(tmp_path))], stdout=subprocess.PIPE, stderr=complaint
        ) as process:
            workers = wait_for(partial(started_workers, process.pid), "it has workers")
            os.kill(min(workers) if is_worker_killed else process.pid, signal.SIGKILL)
            assert process.stdout is not None
            while is_worker_killed and process.stdout.read(1 << 20):
                pass
            process.wait()
        if is_worker_killed:
            assert process.returncode == 1
            complaint.seek(0)
            said = f"{LOG}: one of the processes that dump it was killed\n"
            assert complaint.read().endswith(said)
        else:
            assert process.returncode == -signal.SIGKILL
    wait_for(lambda: not commands(workers), f"{workers} have ended")


@pytest.mark.process
def test_a_reader_that_goes_ends_all_without_a_word(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kvorum.cli", "dump-log", "--print-data-log", "--files"]
    with subprocess.Popen(
        [*command, str(large_log(tmp_path))], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Dumping ")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 128 + signal.SIGPIPE


def waiting_bytes(pipe: IO[bytes]) -> int:
    """Return how much of what was written into a pipe has not been read."""
    (count,) = INT.unpack(fcntl.ioctl(pipe, termios.FIONREAD, bytes(INT.size)))
    return int(count)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows the processes of a process")
@pytest.mark.skipif(usable_cores() == 1, reason="one core is used by one process")
def test_an_interrupt_ends_all_even_if_one_waits_for_the_reader(tmp_path: Path) -> None:
    # One record, which the first process prints, and many, which are the second one's part.
    one = build_batch([RecordData(bytes(USUAL_PART_BYTES), None)], BatchOptions())
    many = build_batch([RecordData(b"", None)] * (USUAL_PART_BYTES // 7), BatchOptions())
    path = tmp_path / LOG
    path.write_bytes(one + many * (WORTH_PROCESSES_BYTES // len(many)))
    command = [sys.executable, "-m", "kvorum.cli", "dump-log", "--deep-iteration", "--files"]
    with subprocess.Popen(
        [*command, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        output = process.stdout
        assert output is not None
        # A page that a small write began is not filled by the next one.
        full = fcntl.fcntl(output, fcntl.F_GETPIPE_SZ) - select.PIPE_BUF
        wait_for(lambda: waiting_bytes(output) >= full, "the pipe is full")
        workers = started_workers(process.pid)
        assert workers
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == 128 + signal.SIGINT
        assert process.stderr is not None
        assert process.stderr.read() == b"kvorum dump-log: interrupted\n"
    wait_for(lambda: not commands(workers), f"{workers} have ended")
