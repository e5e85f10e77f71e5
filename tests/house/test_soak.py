"""The tool for long runs: the figures it takes from outputs, and the line it writes."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.node_process import run_python
from tools import soak
from tools.soak import (
    PARTS,
    QUICK_DIVISOR,
    ROOT,
    TABLE,
    Command,
    Outcome,
    commit,
    figures_in,
    line_of,
    machine,
    run,
    run_part,
)

pytestmark = pytest.mark.process

RESULTS = {"passed", "failed", "interrupted"}
COLUMNS = 7
TOOL_WITH_OTHER_PARTS = """\
import sys
from pathlib import Path
from tools import soak

table, text, *arguments = sys.argv[1:]

def part(divisor):
    words = [sys.executable, "-c", text, str(divisor)]
    return [soak.Command(words=words, figures="^has begun.*")]

soak.PARTS = {"first": part, "second": part}
soak.TABLE = Path(table)
sys.argv[1:] = arguments
sys.exit(soak.main())
"""


def tool(table: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    """Start the tool with two parts, which run a line of Python, and with a table of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", TOOL_WITH_OTHER_PARTS, str(table), text, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def program(text: str) -> Callable[[int], list[Command]]:
    """Return a part whose one command runs a line of Python."""
    return lambda _: [Command(words=[sys.executable, "-c", text], figures=r"^\d+ worlds.*", seed=7)]


def cells_of(line: str) -> list[str]:
    """Return what stands in the columns of a line of the table."""
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def lines_in(table: Path) -> list[list[str]]:
    return [cells_of(line) for line in table.read_text("utf-8").splitlines()]


QUORUM = """\
... 19 of 20, 0 failed
20 seeds, 0 failed
2.56 s of processor time, 12217 events and 228 acknowledged writes a seed

fault                                 struck  in seeds
messages lost                            517      65%
1 of the seeds run a second time, with other hashes of strings
"""
WORLDS = """\
seeds 80405353686 to 80405353705
20 seeds of brokers, 0 failed
           742 writes without an answer
1 of the seeds run a second time, with other hashes of strings
"""
BROKEN_WORLD = """\
seed 1 failed at 4711.250 ms: P38 (a new leader has everything) is broken: partition 0 of broker 3
1 seeds of brokers, 1 failed
"""
STORM = """\
3 kills, 2 full disks; 18,493 records acknowledged: 0 lost, 0 doubled, 0 reordered; 9 taken over
"""
LEDGER = """\
KAFKA-19047: tests/unit/controller/test_broker_lifecycle.py::test_a_new_incarnation (20.0 s)
3 of 3 bugs are caught, 0 of 0 that endanger safety; missed: none
"""
TOPICS = """\
target voters, a message late: 627 states, 2247 transitions, depth 7, NOT all of them, 0.2 s
27 topics, 0 of them exhausted, 20,712 states, 71,667 transitions, 0 broken
"""
SPACES = """\
........................                                                 [100%]
24 passed in 33.98s
"""
BENCHMARKS = """\
Python 3.11.7, x86_64; medians; a ratio above 1 means that ours is better
what                                                       kvorum         peer          ratio  beside
kvorum pipeline, 100,000 records of 20 clusters, local         37.6        226.9  s        6.0x  10 times as long
  its largest Python process                                178.1        156.0  MiB      0.9x  10,000 records
1 groups of one are formed                                   0.00         0.01  s        2.2x  Kafka 4.3.1
kvorum, 0 partitions: leader killed: 60 ms
"""  # noqa: E501 - as it is printed
OUTPUTS = [
    ("quorum", 0, QUORUM, [
        "20 seeds, 0 failed",
        "2.56 s of processor time, 12217 events and 228 acknowledged writes a seed",
    ]),
    ("partitions", 0, WORLDS, ["20 seeds of brokers, 0 failed"]),
    ("partitions", 0, BROKEN_WORLD, [
        "seed 1 failed at 4711.250 ms: P38 (a new leader has everything) is broken",
        "1 seeds of brokers, 1 failed",
    ]),
    ("kill-storm-older", 0, STORM, [STORM.strip()]),
    ("mutation", 0, LEDGER, [LEDGER.split("\n")[1]]),
    ("models", 0, TOPICS, [TOPICS.split("\n")[1]]),
    ("models", 1, SPACES, ["24 passed in 33.98s"]),
    ("growth", 0, BENCHMARKS, [
        "kvorum pipeline, 100,000 records of 20 clusters, local 37.6 s 6.0x",
        "its largest Python process 178.1 MiB 0.9x",
        "1 groups of one are formed 0.00 s 2.2x",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("part", "number", "output", "figures"), OUTPUTS)
def test_the_figures_are_what_a_command_sums_up(
    part: str, number: int, output: str, figures: list[str]
) -> None:
    pattern = PARTS[part](1)[number].figures
    lines = output.splitlines(keepends=True)
    assert [figure for line in lines for figure in figures_in(line, pattern)] == figures


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_commands_for_a_quick_run(part: str) -> None:
    assert PARTS[part](QUICK_DIVISOR)


@pytest.mark.parametrize("part", PARTS)
def test_a_seed_that_is_written_is_the_one_that_the_command_takes(part: str) -> None:
    for command in PARTS[part](1):
        given = {*command.words, *command.environment.values()}
        assert command.seed is None or str(command.seed) in given
    has_seed = any(command.seed is not None for command in PARTS[part](1))
    assert has_seed == (part not in {"kills", "damages", "mutation", "models", "growth"})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "soak.md"


def test_a_part_that_passes_adds_one_line_with_its_figures(table: Path) -> None:
    parts = {"fake": program("print('starting'); print('3 worlds, none broken')")}
    assert run(["fake"], parts, divisor=1, table=table) == 0
    ((date, checked_out, described, part, figures, duration, result),) = lines_in(table)
    assert datetime.strptime(date, "%Y-%m-%d %H:%M").replace(tzinfo=UTC) <= datetime.now(UTC)
    assert (checked_out, described) == (commit(), machine())
    assert (part, figures, result) == ("fake", "seed 7; 3 worlds, none broken", "passed")
    assert re.fullmatch(r"\d+:\d\d:\d\d", duration)


def test_a_command_that_fails_fails_its_part_and_stops_no_other(table: Path) -> None:
    parts = {
        "broken": program("print('2 worlds, 1 broken'); raise SystemExit(3)"),
        "sound": program("print('3 worlds, none broken')"),
    }
    assert run(["broken", "sound"], parts, divisor=1, table=table) == 1
    assert [line[3:5] + line[6:] for line in lines_in(table)] == [
        ["broken", "seed 7; 2 worlds, 1 broken; exit code 3", "failed"],
        ["sound", "seed 7; 3 worlds, none broken", "passed"],
    ]


def test_a_command_without_figures_has_not_passed(table: Path) -> None:
    assert run(["silent"], {"silent": program("print('1 skipped')")}, divisor=1, table=table) == 1
    ((*_, figures, _, result),) = lines_in(table)
    assert (figures, result) == ("seed 7; no figures found", "failed")


def test_the_commands_behind_one_that_fails_run_too(table: Path) -> None:
    first, second = program("raise SystemExit(1)"), program("print('3 worlds')")

    def both(divisor: int) -> list[Command]:
        return [*first(divisor), *second(divisor)]

    assert run(["both"], {"both": both}, divisor=1, table=table) == 1
    assert [(line[4], line[6]) for line in lines_in(table)] == [
        ("seed 7; exit code 1; seed 7; 3 worlds", "failed")
    ]


@pytest.mark.parametrize(
    ("arguments", "divisor", "parts"),
    [((), 1, ["first", "second"]), (("second",), 1, ["second"]), (("--quick",), QUICK_DIVISOR, [])],
    ids=["all", "one", "quick"],
)
def test_only_a_quick_run_is_small_and_writes_no_line(
    arguments: tuple[str, ...], divisor: int, parts: list[str], table: Path
) -> None:
    table.touch()
    with tool(table, "import sys; print('has begun:', sys.argv[1])", *arguments) as process:
        printed = process.communicate()[0]
    assert process.returncode == 0
    assert f"\nhas begun: {divisor}\n" in f"\n{printed}"
    assert [(line[3], line[4]) for line in lines_in(table)] == [
        (part, "has begun: 1") for part in parts
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_run_that_is_interrupted_writes_that_and_ends(
    number: signal.Signals, table: Path
) -> None:
    with tool(table, "import time; print('has begun'); time.sleep(600)") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has begun\n"
        process.send_signal(number)
        assert process.wait() == 1
    ((*_, part, figures, _, result),) = lines_in(table)
    assert (part, figures, result) == ("first", "has begun", "interrupted")


def test_an_unknown_part_is_refused() -> None:
    done = run_python("-m", "tools.soak", "quorum", "quorom")
    assert done.returncode == 2
    assert "no such part: quorom" in done.stderr


def test_a_bar_in_a_figure_does_not_end_the_column() -> None:
    outcome = Outcome("passed", ["a | b"], 3661.4)
    line = line_of("part", outcome, began=datetime.now(UTC), commit="c")
    assert r"| part | a \| b | 1:01:01 | passed |" in line


def test_the_machine_is_described_by_what_figures_depend_on() -> None:
    assert re.fullmatch(r"\d+ cores, \d+ GiB, .+, Python 3\.\d+\.\d+\S*", machine())


def test_the_commit_has_a_mark_where_files_other_than_the_table_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        author = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
        return subprocess.check_output(["git", *author, *words], cwd=tmp_path, text=True).strip()

    table, other = tmp_path / "docs" / "soak.md", tmp_path / "module.py"
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    git("init", "--quiet")
    table.parent.mkdir()
    table.write_text("head\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "begin")
    known = git("rev-parse", "--short", "HEAD")
    table.write_text("head\nline\n")
    assert soak.commit() == known
    other.touch()
    assert soak.commit() == f"{known}+"


def test_the_document_ends_with_a_table_of_lines_that_the_tool_writes() -> None:
    head, _, table = TABLE.read_text("utf-8").rpartition("\n\n")
    assert re.findall(r"^\| `.*?` \|", head, re.MULTILINE), "the parts are explained"
    assert [name for name in PARTS if f"`{name}`" not in head] == []
    columns, rule, *lines = table.splitlines()
    assert table.endswith("|\n")
    assert rule == "|" + COLUMNS * "---|"
    assert len(cells_of(columns)) == COLUMNS
    assert [line for line in lines if len(cells_of(line)) != COLUMNS] == []
    assert {cells_of(line)[3] for line in lines} <= set(PARTS)
    assert {cells_of(line)[6] for line in lines} <= RESULTS


def test_what_runs_behind_everything_else_is_waited_for_longer() -> None:
    told = program('import os; print(os.environ["KVORUM_TEST_PATIENCE"], "worlds")')
    assert run_part(told(1)).figures == ["seed 7", "3 worlds"]
