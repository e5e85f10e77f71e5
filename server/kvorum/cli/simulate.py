"""``kvorum simulate``: run quorums and brokers in simulated worlds, and check what must hold."""

import argparse
import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Final, Literal

from kvorum.cli.progress import LiveLine, TimedProgress
from kvorum.cli.shared_arguments import whole_number
from kvorum.cli.simulated_histories import write_histories
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.report import BrokersReport, QuorumReport, Report, failure_lines
from kvorum.simulation.run import SeedResult, run_seed
from kvorum.simulation.shrinking import shrink_seed

NAME = "simulate"
HELP = "run quorums and brokers in simulated worlds under faults, seed by seed"
_LOGGER = logging.getLogger("kvorum")
_REPORTS: Final[Mapping[WorldKind, type[Report]]] = MappingProxyType(
    {WorldKind.QUORUM: QuorumReport, WorldKind.BROKERS: BrokersReport}
)
_OK, _FAILED = 0, 1
_SEEDS_PER_REPEAT = 100
_SEED_MAX: Final = 2**63 - 1
"""The last seed; the first one is 0, as Python's generator takes -1 for 1."""
_PROCESSES_MAX: Final = 1024
"""The largest number of processes: each is a whole interpreter, of some ten MiB."""
_PROGRESS_SECONDS = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "--seed",
        type=whole_number(0, _SEED_MAX),
        help="the first seed (default: a fresh one)",
    )
    parser.add_argument(
        "--seeds", type=whole_number(1), default=1, metavar="N", help="how many seeds to run"
    )
    parser.add_argument(
        "--only",
        choices=[kind.value for kind in WorldKind],
        help="run one of a seed's two worlds: a quorum alone, or brokers and their quorum",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1, _PROCESSES_MAX),
        default=os.cpu_count() or 1,
        metavar="J",
        help="how many processes to use (default: one for each processor)",
    )
    parser.add_argument(
        "--duration",
        type=whole_number(1),
        default=120,
        metavar="SECONDS",
        help="how much time passes in the world of a quorum alone (default: 120)",
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write what happened to FILE")
    parser.add_argument(
        "--history",
        type=Path,
        metavar="DIRECTORY",
        help="write what the clients of brokers saw to DIRECTORY, for check-history",
    )
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="find fewer faults that fail a quorum alone the same way",
    )
    parser.add_argument("--digest", action="store_true", help="print the hash of the trace alone")


def run(arguments: argparse.Namespace) -> int:
    """Run the seeds; return 1 if one failed, or had another trace when it was repeated."""
    first = secrets.randbelow(2**40) if arguments.seed is None else arguments.seed
    seeds = range(first, first + arguments.seeds)
    heard = _LOGGER.level
    _hear_nothing()
    chosen = [WorldKind(arguments.only)] if arguments.only else list(WorldKind)
    try:
        return max(_run_worlds(kind, seeds, arguments) for kind in chosen)
    finally:
        _LOGGER.setLevel(heard)


def _run_worlds(kind: WorldKind, seeds: range, arguments: argparse.Namespace) -> int:
    """Run the seeds' worlds of one kind, print the report, and return the exit code."""
    work = partial(run_seed, kind=kind, duration_ms=arguments.duration * 1000)
    if arguments.digest:
        for seed in seeds:
            print(work(seed).digest)
        return _OK
    _name(seeds)
    report = _REPORTS[kind]()
    # The traces of a seed's two worlds go into one file.
    is_second = arguments.only is None and kind is WorldKind.BROKERS
    results = _results(work, seeds, arguments, mode="a" if is_second else "w")
    try:
        digests = _run_all(report, results, seeds, arguments)
    finally:
        # After Ctrl-C, that of the seeds so far.
        for line in report.lines():
            print(line)
    problems = list(report.missing)
    problems += _repeat(digests, ("--only", kind.value, "--duration", str(arguments.duration)))
    return _concluded(problems, has_failed=bool(report.failures))


def _name(seeds: range) -> None:
    print(f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}", flush=True)


def _concluded(problems: Iterable[str], *, has_failed: bool) -> int:
    """Print what is wrong with the runs as a whole, and return the exit code."""
    for problem in problems:
        has_failed = True
        print(f"check failed: {problem}")
    return _FAILED if has_failed else _OK


def _hear_nothing() -> None:
    """Silence the logs of simulated nodes: their errors are intended."""
    _LOGGER.setLevel(logging.CRITICAL + 1)


def _run_all(
    report: Report,
    results: Generator[SeedResult],
    seeds: range,
    arguments: argparse.Namespace,
) -> dict[int, str]:
    """Add all results to the report, print failures at once, and return each trace's hash."""
    digests: dict[int, str] = {}
    reported_at = time.monotonic()
    line = LiveLine()

    def come_so_far() -> str:
        return f"{report.seeds} of {len(seeds)} {report.worlds}, {len(report.failures)} failed"

    with TimedProgress(line, come_so_far), closing(results):
        for result in results:
            report.add(result)
            digests[result.seed] = result.digest
            if result.failure is not None:
                with line.away():
                    _tell_failure(result, arguments)
            has_paused = time.monotonic() - reported_at > _PROGRESS_SECONDS
            if has_paused and not line.is_with_output:
                reported_at = time.monotonic()
                told = f"... {report.seeds} of {len(seeds)}, {len(report.failures)} failed"
                with line.away():
                    print(told, flush=True)
    return digests


def _results(
    work: Callable[..., SeedResult],
    seeds: range,
    arguments: argparse.Namespace,
    *,
    mode: Literal["w", "a"],
) -> Generator[SeedResult]:
    """Yield the result of each seed, in the order of completion."""
    is_alone = _is_alone(seeds, arguments.jobs)
    trace = arguments.trace if is_alone else None
    directory = arguments.history if is_alone else None
    work = partial(work, is_traced=trace is not None, is_history_kept=directory is not None)
    for result in _each(work, seeds, arguments.jobs):
        is_wanted = len(seeds) == 1 or result.broken is not None
        if trace is not None and is_wanted:
            _write(trace, result.trace, mode=mode)
        if directory is not None and is_wanted:
            write_histories(directory, result.histories)
        yield result


def _write(path: Path, trace: Sequence[str], *, mode: Literal["w", "a"] = "w") -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in trace)


def _is_alone(seeds: range, process_count: int) -> bool:
    """Return whether this process runs the seeds itself."""
    return len(seeds) == 1 or process_count == 1


def _each(
    work: Callable[[int], SeedResult], seeds: range, process_count: int
) -> Iterator[SeedResult]:
    if _is_alone(seeds, process_count):
        yield from map(work, seeds)
        return
    others = active_children()
    pool = ProcessPoolExecutor(process_count, get_context("spawn"), initializer=_begin_process)
    # Ctrl-C is for this process, which ends the others; in those it stays blocked. The pool has to
    # be there first: what it makes for itself unblocks the signal.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        futures = [pool.submit(work, seed) for seed in seeds]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    try:
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        # After Ctrl-C, or when the reader closes the output, no process finishes its seed.
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    _hear_nothing()
    parent = parent_process()
    assert parent is not None
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """End when the command is killed, which cannot end the processes of its pool any more."""
    parent.join()
    os._exit(_FAILED)


def _tell_failure(result: SeedResult, arguments: argparse.Namespace) -> None:
    for line in failure_lines(result):
        print(line)
    if arguments.shrink and result.kind is WorldKind.QUORUM:
        print("  shrinking ...", flush=True)
        smaller = shrink_seed(result)
        print(f"  {len(smaller.plan)} of {len(result.plan)} faults are enough:")
        for fault in smaller.plan:
            print(f"    {fault}")
        print(f"  then: {smaller.failure}")
        if arguments.trace is not None:
            _write(arguments.trace, smaller.trace)
    sys.stdout.flush()


def _repeat(digests: dict[int, str], options: Sequence[str]) -> Iterator[str]:
    """Run one seed in a hundred again in another process; yield those with another trace."""
    chosen = sorted(digests)[::_SEEDS_PER_REPEAT]
    with TimedProgress(LiveLine(), lambda: f"{len(chosen)} of the seeds a second time"):
        for seed in chosen:
            again = _digest_elsewhere(seed, options)
            if again != digests[seed]:
                yield f"seed {seed} gave trace {digests[seed]}, and then {again}"
    count = -(-len(digests) // _SEEDS_PER_REPEAT)
    print(f"{count} of the seeds run a second time, with other hashes of strings")


def _digest_elsewhere(seed: int, options: Sequence[str]) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed % 1000 + 1)}
    command = [sys.executable, "-m", "kvorum.cli", NAME, "--digest"]
    command += ["--seed", str(seed), *options]
    done = subprocess.run(  # noqa: S603 - this very program
        command, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip()
