"""The commands in docs/tools.md print what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

PAGE: Final = ROOT / "docs" / "tools.md"
PROMPT: Final = "$ "
LEFT_OUT: Final = "…"
BLOCK: Final = re.compile(r"^```\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS_MIN: Final = 12


class Shown(NamedTuple):
    """A command of the page, and the lines below it."""

    command: str
    lines: list[str]


def shown_commands() -> Iterator[Shown]:
    """Yield the commands of all blocks, in their order."""
    for block in BLOCK.findall(PAGE.read_text("utf-8")):
        command = ""
        for is_command, lines in groupby(
            block.splitlines(), key=lambda line: line.startswith(PROMPT)
        ):
            if not is_command:
                yield Shown(command, list(lines))
                continue
            *silent, last = (line.removeprefix(PROMPT) for line in lines)
            for each in silent:
                yield Shown(each, [])
            command = last


def pattern(lines: list[str]) -> str:
    """Return the pattern of an output; what is left out may be lines, or the end of one."""
    return "".join(map(_line_pattern, lines))


def _line_pattern(line: str) -> str:
    if line == LEFT_OUT:
        return r"(?:.*\n)*?"
    end = r".*\n" if line.endswith(LEFT_OUT) else r"\n"
    return re.escape(line.removesuffix(LEFT_OUT)) + end


@pytest.mark.process
@pytest.mark.slow
def test_every_command_prints_what_is_shown(golden_sets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "nodes"
    shutil.copytree(golden_sets / "dynamic-4.3.1" / "metadata", folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shown = list(shown_commands())
    assert len(shown) >= COMMANDS_MIN
    for command, lines in shown:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        printed = (done.stdout + done.stderr).replace(f"{folder}/", "")
        assert re.fullmatch(pattern(lines), printed), (command, printed)


@pytest.mark.parametrize("change", ["offset 1266", "sound: 22 files"])
def test_another_output_would_be_noticed(change: str) -> None:
    """The pattern of a block does not fit a text in which something is different."""
    block = next(one for one in shown_commands() if any(change in line for line in one.lines))
    whole = "".join(f"{line}\n" for line in block.lines)
    assert re.fullmatch(pattern(block.lines), whole)
    assert not re.fullmatch(pattern(block.lines), whole.replace(change, "other"))
