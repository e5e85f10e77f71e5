"""The environment that `make` makes: a Python that is too old is refused by name and makes none."""

import subprocess
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT

pytestmark = pytest.mark.process

OLD_PYTHON = """#!/bin/sh
exec python3 -c '
import sys
sys.version_info = (3, 10, 4, "final", 0)
code, sys.argv = sys.argv[2], sys.argv[2:]
exec(code)
' "$@"
"""
"""A Python that takes itself for 3.10."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the Makefile, and what its environment depends on."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def old_python(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OLD_PYTHON, encoding="utf-8")
    path.chmod(0o755)
    return path


def refusal(folder: Path, *words: str, target: str = "run") -> str:
    """Return the first line that a refused target prints."""
    done = subprocess.run(
        ["make", "--no-print-directory", target, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr.splitlines()[0]


@pytest.mark.parametrize("target", ["run", "dist"])
def test_an_old_python_is_refused_by_name_and_leaves_nothing(folder: Path, target: str) -> None:
    python = old_python(folder / "python3.10")
    assert refusal(folder, f"PYTHON={python}", target=target) == (
        f"kvorum needs Python 3.11 or newer: {python} is 3.10.4"
    )
    assert not (folder / ".venv").exists()


def test_an_environment_of_an_old_python_is_refused_by_name(folder: Path) -> None:
    old_python(folder / ".venv" / "bin" / "python")
    assert refusal(folder) == (
        "kvorum needs Python 3.11 or newer: the one in .venv, which 'make clean' removes, is 3.10.4"
    )


def test_a_machine_without_python_gets_one_line(folder: Path) -> None:
    assert refusal(folder, "PYTHON=") == "kvorum needs Python 3.11 or newer on PATH"
