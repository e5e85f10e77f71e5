"""Programs of the tests that use franz-go, a client in Go."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

MODULE: Final = Path(__file__).parents[1] / "franz_go"
"""The module of Go that has the programs, and pins the client."""
NEEDS_GO: Final = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not there")


def compiled_program(name: str, folder: Path) -> Path:
    """Compile a program into a folder."""
    path = folder / name
    subprocess.run(["go", "build", "-o", str(path), f"./{name}"], cwd=MODULE, check=True)
    return path


def compiled_tests(package: str, folder: Path) -> Path:
    """Compile the tests that a package of the client comes with into a folder."""
    path = folder / f"{package.rpartition('/')[2]}.test"
    subprocess.run(["go", "test", "-c", "-o", str(path), package], cwd=MODULE, check=True)
    return path
