"""Tiers are found from folders, fixtures and marks, and the quick one is held by a guard."""

import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from tests.support.programs import run_python
from tests.support.source_tree import ROOT

pytestmark = pytest.mark.process

PLUGIN: Final = """
import pytest

@pytest.fixture(scope="session")
def java(): return "java"

@pytest.fixture(scope="session")
def shared_partner(java): return java

@pytest.fixture(scope="module")
def own_partner(java): return java
"""
FILES: Final = MappingProxyType({
    "unit/test_unit.py": """
import socket, subprocess, sys, threading, pytest
def test_nothing(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.process
def test_process(): subprocess.run([sys.executable, "-c", ""], check=True)
def test_socket(): socket.create_server(("127.0.0.1", 0))
def test_hidden():
    try: subprocess.run([sys.executable, "-c", ""])
    except BaseException: pass
def test_in_a_thread():
    thread = threading.Thread(target=lambda: socket.create_server(("127.0.0.1", 0)))
    thread.start()
    thread.join()
""",
    "interop/test_interop.py": """
import pytest
def test_socket():
    import socket
    socket.create_server(("127.0.0.1", 0)).close()
def test_shared(shared_partner): pass
def test_own(own_partner): pass
def test_direct(java): pass
@pytest.mark.sample
def test_sample(own_partner): pass
""",
})  # fmt: skip
MARKS: Final = (
    "[pytest]\nmarkers =\n slow: s\n process: p\n sample: s\naddopts = -p no:cacheprovider\n"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with tests that keep to their folders and tests that do not."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text(MARKS)
    for name, text in {"conftest.py": PLUGIN, **FILES}.items():
        file = folder / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def run(project: Path, *options: str) -> str:
    """Return what pytest prints about the project."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = run_python(
        "-m",
        "pytest",
        "-p",
        "tests.support.tiers",
        *options,
        folder=project,
        environment=os.environ | {"PYTHONPATH": paths},
    )
    return done.stdout + done.stderr


def chosen(project: Path, tier: str) -> set[str]:
    """Return the names of the tests of a tier."""
    lines = run(project, "--collect-only", "-q", "--tier", tier).splitlines()
    return {line.split("/")[-1].split("::")[-1] for line in lines if "::" in line}


def test_each_tier_has_what_it_may_cost(project: Path) -> None:
    quick = {"test_nothing", "test_socket", "test_hidden", "test_in_a_thread"}
    assert chosen(project, "quick") == quick
    assert chosen(project, "test") == quick | {"test_process", "test_shared", "test_sample"}
    everything = chosen(project, "all")
    assert everything == chosen(project, "test") | {"test_slow", "test_own", "test_direct"}


def test_a_quick_test_opens_no_socket_and_starts_no_process(project: Path) -> None:
    told = run(project, "-v")
    for name in ("test_socket", "test_hidden"):
        assert f"test_unit.py::{name} FAILED" in told
    assert "socket.bind: tests of house, model, unit open no socket" in told
    assert "a quick test did this: subprocess.Popen" in told
    assert "a quick test did this: socket.bind" in told
    for name in ("test_nothing", "test_process"):
        assert f"test_unit.py::{name} PASSED" in told
    assert "test_interop.py::test_socket PASSED" in told
