"""A copy of the project to put bugs into, and the tests run in it."""

import os
import re
import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.model.mutation.mutant import Mutant, Sources
from tests.support.node_process import run_python
from tests.support.source_tree import ROOT, SOURCE_ROOTS

COPIED = (*SOURCE_ROOTS, "tests", "json-schemas", "pyproject.toml")
TEST_TIMEOUT_SECONDS = 60
FAILED = re.compile(r"^FAILED (?P<test>\S+?::.*?)(?: - (?P<why>.*))?$", re.MULTILINE)
SOME_FAILED = 1
"""pytest's exit code where tests ran and some failed; anything above is not a verdict."""


_WORLDS = """
import logging, sys
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.run import run_seed
logging.disable(logging.CRITICAL)
seeds = range(1, int(sys.argv[1]) + 1)
broken = (seed for seed in seeds if run_seed(seed, kind=WorldKind.BROKERS).broken is not None)
print(next(broken, 0))
"""
_QUORUM = """
import logging, sys
from kvorum.simulation.run import run_seed
logging.disable(logging.CRITICAL)
print(run_seed(int(sys.argv[1]), duration_ms=120_000).broken or "")
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a run of tests: whether all passed, or the first that failed, and why."""

    has_passed: bool
    test: str = ""
    why: str = ""


class NoVerdictError(Exception):
    """The tests did not run: they could not be found or imported."""


class Scratch:
    """The copy, in a folder that is empty before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._healthy: set[str] = set()
        self._deselected: list[str] = []
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(source, folder / name, ignore=ignored)
            else:
                shutil.copy(source, folder / name)
        self.sources = Sources(folder)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Generator[None]:
        """Hold the copy with a bug in it."""
        changed = mutant.mutated(self.sources)
        try:
            for name, text in changed.items():
                self._write(name, text)
            yield
        finally:
            for name in changed:
                self._write(name, self.sources.texts[name])

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def run(self, tests: Sequence[str]) -> Verdict:
        """Run tests up to the first that fails; raises NoVerdictError."""
        done = self._run_python(
            "-m",
            "pytest",
            "-q",
            "-x",
            "-rf",
            "--no-header",
            "--timeout",
            str(TEST_TIMEOUT_SECONDS),
            "-p",
            "no:cacheprovider",
            *(f"--deselect={test}" for test in self._deselected),
            *tests,
        )
        if done.returncode == 0:
            return Verdict(has_passed=True)
        found = FAILED.search(done.stdout)
        if done.returncode != SOME_FAILED or found is None:
            raise NoVerdictError(f"{' '.join(tests)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return Verdict(has_passed=False, test=found["test"], why=found["why"] or "")

    def worlds_until_broken(self, count: int) -> int | None:
        """Return how many worlds of brokers it takes until one is broken, None for all of them."""
        done = self._run_python("-c", _WORLDS, str(count))
        if done.returncode != 0:
            raise NoVerdictError(done.stderr[-2000:])
        return int(done.stdout) or None

    def broken_in_quorum(self, seed: int) -> str:
        """Return the number of the property that a world of a quorum alone breaks, or nothing."""
        done = self._run_python("-c", _QUORUM, str(seed))
        if done.returncode != 0:
            raise NoVerdictError(done.stderr[-2000:])
        return done.stdout.strip()

    def is_healthy(self, test: str) -> bool:
        """Tell whether a test passes without any bug; one that does not is never run again."""
        if test not in self._healthy:
            if not self.run([test]).has_passed:
                self._deselected.append(test)
                return False
            self._healthy.add(test)
        return True

    def _run_python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        roots = os.pathsep.join(str(self.folder / name) for name in SOURCE_ROOTS)
        environment = os.environ | {"PYTHONPATH": roots, "COLUMNS": "400"}
        return run_python(*arguments, folder=self.folder, environment=environment)
