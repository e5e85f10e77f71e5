"""`python -m tools.soak [PART ...] [--quick]`: make the long runs, and note them in docs/soak.md.

A part runs its commands one after the other, with `nice`, and adds a line to the table in
docs/soak.md when it ends. It fails if a command fails, or prints none of the figures that are
looked for; the other parts run all the same. Ctrl-C ends the part, which gets its line, and the
whole run.

`--quick` runs each part at about a hundredth of its size, to try it, and writes no line.
"""

import argparse
import json
import os
import platform
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from tests.model.mutation.ledger import LEDGER_FILE

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE_NAME: Final = "docs/soak.md"
TABLE: Final = ROOT / TABLE_NAME
QUICK_DIVISOR: Final = 100
NICENESS: Final = 10
PATIENCE: Final = "3"
"""The factor by which tests of a run wait longer than others: everything else comes before it."""
SEEDS: Final = 1_000
DAMAGES_OF_A_NODE: Final = 400
KILL_ROUNDS: Final = 500
STORM_MINUTES: Final = 10.0
OURS: Final = ("--ours", "11,12,13")
MIXED: Final = ("--ours", "11,12")
"""Of a storm's three brokers those that are kvorum's."""
FLEET_RECORDS: Final = 10_000_000
PARTITIONS: Final = 10_000
# Of a large topic of the model, when only a hundredth of all is seen.
QUICK_STATES: Final = 500
# Each start after a kill has more logs to open: 500 of them may take over two hours.
TEST_TIMEOUT_S: Final = 14_400
INTERRUPTED_S_MAX: Final = 60.0
GIB: Final = 1 << 30
MODULE: Final = (sys.executable, "-m")
BENCHMARK_ROW: Final = r"^ *(.+?) {2,}([\d.]+) +[\d.]+ +(\S*) +([\d.]+x) "
Result = Literal["passed", "failed", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, and the pattern of the lines, or of their groups, that are its figures."""

    words: Sequence[str]
    figures: str
    seed: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


Parts = Mapping[str, Callable[[int], list[Command]]]
"""The commands of each part, by the number that its size is divided by."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a part."""

    result: Result
    figures: Sequence[str]
    seconds: float


def quorum(divisor: int) -> list[Command]:
    """Run the simulator of the quorum on fresh seeds."""
    seed = secrets.randbelow(2**40)
    words = [
        *MODULE,
        "kvorum.cli",
        "simulate",
        "--only",
        "quorum",
        "--seed",
        str(seed),
        "--seeds",
        str(SEEDS // divisor),
    ]
    figures = (
        r"^\d+ seeds, \d+ failed|^[\d.]+ s of processor time.*"
        r"|^seed \d+ failed at .*|^check failed: .*"
    )
    return [Command(words=words, figures=figures, seed=seed)]


def partitions(divisor: int) -> list[Command]:
    """Run worlds of brokers from fresh seeds."""
    seed = secrets.randbelow(2**40)
    words = [*MODULE, "kvorum.cli", "simulate", "--only", "brokers"]
    words += ["--seed", str(seed), "--seeds", str(SEEDS // divisor)]
    figures = (
        r"^\d+ seeds of brokers, \d+ failed|^(seed \d+ failed at [^:]+: [^:]+)"
        r"|^check failed: .*"
    )
    return [Command(words=words, figures=figures, seed=seed)]


def kills(divisor: int) -> list[Command]:
    """Kill a node beneath a stream of CreateTopics, and start it on the same data."""
    file = "tests/process/test_kill.py"
    return [
        Command(
            words=[*MODULE, "pytest", "-q", "--timeout", str(TEST_TIMEOUT_S), file],
            figures=r"^MEASURED (\d+ rounds in .*)",
            environment={"KVORUM_KILL_ROUNDS": str(KILL_ROUNDS // divisor)},
        )
    ]


def damages(divisor: int) -> list[Command]:
    """Damage the files of five nodes, and have `kvorum log check` look at each damage."""
    file = "tests/node/inspection/test_log_check.py"
    return [
        Command(
            words=[*MODULE, "pytest", "-q", file, "-k", "a_damaged_file_is_named"],
            figures=r"^MEASURED (\d+ damages.*)",
            environment={"KVORUM_LOG_DAMAGES": str(DAMAGES_OF_A_NODE // divisor)},
        )
    ]


def storm(module: str, divisor: int, *options: str) -> list[Command]:
    """Strike brokers and clients, as a module of the interop tests does with these options."""
    seed = secrets.randbelow(2**40)
    words = [*MODULE, f"tests.interop.storms.{module}", "--minutes", str(STORM_MINUTES / divisor)]
    words += ["--seed", str(seed), *options]
    return [Command(words=words, figures=r"^\d+ kills\b.*|^\S+Error: .*", seed=seed)]


def mutation(divisor: int) -> list[Command]:
    """Put in every bug of the ledger."""
    words = [*MODULE, "tests.model.mutation", "--leave-ledger"]
    if divisor > 1:
        ids = sorted(json.loads(LEDGER_FILE.read_text(encoding="utf-8")))
        words += ["--only", *ids[::divisor]]
    return [Command(words=words, figures=r"^\d+ of \d+ bugs are caught, .*|.*: NOT CAUGHT")]


def models(divisor: int) -> list[Command]:
    """Exhaust the large topics of the model, and the large spaces of a partition."""
    topics = [*MODULE, "tests.model.exploration", "--large"]
    spaces = {"KVORUM_PARTITION_SPACES": "all"}
    if divisor > 1:
        topics, spaces = [*topics, "--states-max", str(QUICK_STATES)], {}
    file = "tests/model/properties/partitions/test_spaces.py"
    return [
        Command(words=topics, figures=r"^\d+ topics, .*|.* does not hold after:"),
        Command(
            words=[*MODULE, "pytest", "-q", "--timeout", str(TEST_TIMEOUT_S), file],
            figures=r"^\d+ (?:failed|passed|error).* in [\d.]+s",
            environment=spaces,
        ),
    ]


def growth(divisor: int) -> list[Command]:
    """Measure what grows: with records, with partitions, with clients and groups."""
    measured = (
        ("spark-growth", "--fleet-records", str(FLEET_RECORDS // divisor)),
        ("data", "--data", "requests,partitions,groups", "--divisor", str(divisor)),
        ("controller", "--partitions", f"0,{PARTITIONS // divisor}"),
    )
    return [
        Command(words=(*MODULE, "benchmarks", *words), figures=BENCHMARK_ROW) for words in measured
    ]


PARTS: Final[Parts] = MappingProxyType(
    {
        "quorum": quorum,
        "partitions": partitions,
        "kills": kills,
        "damages": damages,
        "kill-storm-ours": lambda divisor: storm("kill_storm", divisor, *OURS),
        "kill-storm-mixed": lambda divisor: storm("kill_storm", divisor, *MIXED),
        "kill-storm-older": lambda divisor: storm("kill_storm", divisor, *MIXED, "--older"),
        "kill-storm-disks": lambda divisor: storm("kill_storm", divisor, "--disks"),
        "transfers-ours": lambda divisor: storm("transfer_storm", divisor, *OURS),
        "transfers-mixed": lambda divisor: storm("transfer_storm", divisor, *MIXED),
        "members-ours": lambda divisor: storm("member_storm", divisor, *OURS),
        "members-mixed": lambda divisor: storm("member_storm", divisor, *MIXED),
        "shares-ours": lambda divisor: storm("share_storm", divisor, *OURS),
        "shares-mixed": lambda divisor: storm("share_storm", divisor, *MIXED),
        "mutation": mutation,
        "models": models,
        "growth": growth,
    }
)


def run_part(commands: Sequence[Command]) -> Outcome:
    """Run all commands of a part, whether or not the ones before have failed."""
    began = time.monotonic()
    result: Result = "passed"
    figures: list[str] = []
    try:
        for command in commands:
            if command.seed is not None:
                figures.append(f"seed {command.seed}")
            if not _has_passed(command, figures):
                result = "failed"
    except KeyboardInterrupt:
        result = "interrupted"
    return Outcome(result, figures, time.monotonic() - began)


def _has_passed(command: Command, figures: list[str]) -> bool:
    """Run a command and show its output; add its figures to `figures`."""
    words = ["nice", "-n", str(NICENESS), *command.words]
    known = len(figures)
    with subprocess.Popen(  # noqa: S603 - commands of this module
        words,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "KVORUM_TEST_PATIENCE": PATIENCE,
            **command.environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # Ctrl-C shall not reach what the command has started: ending that is the command's part.
        process_group=0,
    ) as process:
        try:
            for line in process.stdout or ():
                figures += figures_in(line, command.figures)
                print(line, end="", flush=True)
            code = process.wait()
        except KeyboardInterrupt:
            _interrupt(process)
            raise
    if code:
        figures.append(f"exit code {code}")
        return False
    if len(figures) == known:
        figures.append("no figures found")
        return False
    return True


def _interrupt(process: subprocess.Popen[str]) -> None:
    """End a command, which has some time to end what it has started; then that is ended too."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=INTERRUPTED_S_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def figures_in(line: str, pattern: str) -> list[str]:
    """Return the figures of a line: the groups of the pattern that match, or all of the match."""
    match = re.search(pattern, line)
    if match is None:
        return []
    told = " ".join(group for group in match.groups() if group) or match[0]
    return [" ".join(told.split())]


def commit() -> str:
    """Return the short hash of what is checked out, with `+` where the files differ from it.

    The table itself does not count: each part adds to it.
    """
    try:
        known = _git("rev-parse", "--short", "HEAD")
        is_dirty = bool(_git("status", "--porcelain", "--", ".", f":!{TABLE_NAME}"))
        return f"{known}+" if is_dirty else known
    except (OSError, subprocess.CalledProcessError):
        return "none"


def _git(*words: str) -> str:
    done = subprocess.run(  # noqa: S603 - questions of this module
        ["git", *words],  # noqa: S607 - wherever it is installed
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def machine() -> str:
    """Return what figures depend on, and nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    described = Path("/proc/cpuinfo")
    text = described.read_text(encoding="utf-8") if described.exists() else ""
    model = re.search(r"^model name\s*: (.+)", text, re.MULTILINE)
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, "
        f"{model[1] if model else platform.machine()}, Python {platform.python_version()}"
    )


def line_of(name: str, outcome: Outcome, *, began: datetime, commit: str) -> str:
    """Return a part's line of the table."""
    cells = (
        f"{began:%Y-%m-%d %H:%M}",
        commit,
        machine(),
        name,
        "; ".join(outcome.figures),
        str(timedelta(seconds=round(outcome.seconds))),
        outcome.result,
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def run(names: Sequence[str], parts: Parts, *, divisor: int, table: Path | None) -> int:
    """Run the parts and add their lines to `table`; return 1 unless all have passed."""
    results: list[Result] = []
    for name in names:
        began, checked_out = datetime.now(UTC), commit()
        outcome = run_part(parts[name](divisor))
        line = line_of(name, outcome, began=began, commit=checked_out)
        print(line, end="", flush=True)
        if table is not None:
            with table.open("a", encoding="utf-8") as file:
                file.write(line)
        results.append(outcome.result)
        if outcome.result == "interrupted":
            break
    return int(set(results) != {"passed"})


def main() -> int:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a hundredth of it; writes no line")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.parts if name not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    # Either signal ends the command and writes the line. A shell that runs this in the background
    # has SIGINT ignored, which the commands would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    return run(
        arguments.parts or list(PARTS),
        PARTS,
        divisor=QUICK_DIVISOR if arguments.quick else 1,
        table=None if arguments.quick else TABLE,
    )


if __name__ == "__main__":
    sys.exit(main())
