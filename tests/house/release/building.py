"""Archives built from this tree, and clean environments that have nothing but a wheel installed."""

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.source_tree import ROOT

PROGRAMS: Final = Path(__file__).parent / "programs"
BUILD_TIMEOUT_S: Final = 120
INSTALL_TIMEOUT_S: Final = 500
PROGRAM_TIMEOUT_S: Final = 180
# Variables that would let a program find more than its environment has.
LEAKS: Final = ("PYTHON", "VIRTUAL_ENV", "COV_", "COVERAGE", "PYSPARK", "SPARK")


@dataclass(frozen=True, slots=True)
class Archives:
    """The two files of a release."""

    sdist: Path
    wheel: Path


def run(command: Sequence[str], *, folder: Path, timeout_s: float) -> str:
    """Return what a command prints; its whole output is the failure's text if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    said = f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, said
    return done.stdout


def clean_environment() -> Mapping[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith(LEAKS)}


def build(target: Path) -> Archives:
    """Build as `make dist` does: the source archive from the tree, the wheel from that archive."""
    run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target)],
        folder=ROOT,
        timeout_s=BUILD_TIMEOUT_S,
    )
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    return Archives(sdist, wheel)


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with a wheel in it, and an empty folder to work in."""

    environment: Path
    folder: Path

    @property
    def python(self) -> str:
        return str(self.environment / "bin" / "python")

    @property
    def kvorum(self) -> str:
        """The installed command."""
        return str(self.environment / "bin" / "kvorum")

    def run_python(self, *arguments: str) -> str:
        """Run Python isolated: neither this tree nor the user's packages can be imported."""
        command = [self.python, "-I", "-W", "error::SyntaxWarning", *arguments]
        return run(command, folder=self.folder, timeout_s=PROGRAM_TIMEOUT_S)

    def run_program(self, name: str, *arguments: str) -> str:
        """Run one of the programs beside this file."""
        return self.run_python(str(PROGRAMS / name), *arguments)

    def run_kvorum(self, *arguments: str) -> str:
        """Run the installed command."""
        return run([self.kvorum, *arguments], folder=self.folder, timeout_s=PROGRAM_TIMEOUT_S)

    def has(self, module: str) -> bool:
        """Whether a module can be imported there."""
        code = f"import importlib.util; print(importlib.util.find_spec({module!r}) is not None)"
        return self.run_python("-c", code).strip() == "True"


def install(
    wheel: Path, *, extra: str | None, target: Path, beside: Sequence[str] = ()
) -> Installation:
    """Install a wheel, with one extra or none, into a new environment below `target`.

    The packages `beside` it are installed too.
    """
    environment, folder = target / "environment", target / "work"
    folder.mkdir()
    venv.create(environment, with_pip=False, symlinks=True)
    wanted = f"kvorum[{extra}]" if extra else "kvorum"
    installation = Installation(environment, folder)
    pip = [sys.executable, "-m", "pip", "--python", installation.python]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    run(
        [*pip, "install", *options, *constraints, f"{wanted} @ {wheel.as_uri()}", *beside],
        folder=folder,
        timeout_s=INSTALL_TIMEOUT_S,
    )
    return installation
