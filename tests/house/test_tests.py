"""The tests themselves: their tiers; they lend each other nothing, and wait in one way."""

import asyncio
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from tests.support.node_process import run_python
from tests.support.source_tree import ROOT, python_files, tracked_files
from tests.support.waiting import (
    PATIENCE_S,
    NeverCameAboutError,
    Threads,
    wait_for,
    wait_for_async,
    wait_for_change,
    wait_for_event,
)

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
# Places in the tests: `tests/unit/raft`, `tests.support.waiting`, and `wait_for` after the latter.
_PATH = re.compile(r"\btests/[\w./-]*\w")
_DOTTED = re.compile(r"(?<![\w.])tests(?:\.[a-z_]\w*)+")
_LENT = re.compile(r"^\s*(?:from|import) tests\.[\w.]*\b(?:test_|conftest\b).*", re.MULTILINE)
_NAMED_IN = {".md", ".py", ".toml", ".yml", ".yaml", ""}


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


@pytest.mark.process
def test_each_tier_has_what_it_may_cost(project: Path) -> None:
    quick = {"test_nothing", "test_socket", "test_hidden", "test_in_a_thread"}
    assert chosen(project, "quick") == quick
    assert chosen(project, "test") == quick | {"test_process", "test_shared", "test_sample"}
    everything = chosen(project, "all")
    assert everything == chosen(project, "test") | {"test_slow", "test_own", "test_direct"}


@pytest.mark.process
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


def test_no_test_module_and_no_conftest_is_imported() -> None:
    found = [
        f"{file.name}: {line}"
        for file in python_files("tests", "benchmarks", "tools")
        for line in _LENT.findall(file.text)
    ]
    assert found == []


def is_module(dotted: str) -> bool:
    """Return whether a module or a folder of modules bears the name."""
    path = ROOT.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.mark.process
def test_every_place_in_the_tests_that_a_text_names_is_there() -> None:
    missing = [
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in tracked_files()
        if path.suffix in _NAMED_IN and path.name != "CHANGELOG.md" and "golden" not in path.parts
        for name in sorted(named_places(path.read_text("utf-8")))
    ]
    assert missing == []


def named_places(text: str) -> set[str]:
    """Return the places in the tests that a text names and that are not there."""
    missing = {
        name
        for name in _PATH.findall(text)
        if not (ROOT / name.removesuffix("test_")).exists() and not (ROOT / f"{name}.py").exists()
    }
    for dotted in _DOTTED.findall(text):
        parts = dotted.split(".")
        # The last two parts may be names in the module, and the first folder is never all of it.
        shortest = max(2, len(parts) - 2)
        if not any(is_module(".".join(parts[:n])) for n in range(len(parts), shortest - 1, -1)):
            missing.add(dotted)
    return missing


def test_a_place_that_is_not_there_is_found() -> None:
    gone = {"tests/" + "unit/gone/test_x.py", "tests." + "unit.gone.module.name"}
    assert named_places(f"`tests/unit/raft`, {' and '.join(gone)}, tests.support.waiting") == gone


@pytest.mark.process
def test_the_page_about_the_tests_explains_every_folder() -> None:
    page = (ROOT / "tests" / "README.md").read_text("utf-8")
    files = (path.relative_to(ROOT).parts for path in tracked_files())
    folders = {parts[1] for parts in files if parts[0] == "tests" and len(parts) > 2}
    assert {name for name in folders if f"| `{name}/` |" not in page} == set()


def test_a_number_is_an_answer_and_an_empty_value_is_not() -> None:
    answers: Iterator[object] = iter((None, False, (), "", 0))
    assert wait_for(lambda: next(answers), "a number") == 0


def test_an_error_that_is_expected_meanwhile_is_not_an_answer() -> None:
    answers = iter([ConnectionError("refused")])

    def look() -> str:
        for error in answers:
            raise error
        return "served"

    assert wait_for(look, "the node serves", not_yet=(ConnectionError,)) == "served"


def test_any_other_error_ends_the_wait() -> None:
    def look() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        wait_for(look, "never", not_yet=(ConnectionError,))


def test_the_end_of_patience_says_what_was_there_instead() -> None:
    def look() -> None:
        raise ConnectionError("refused")

    with pytest.raises(NeverCameAboutError) as caught:
        wait_for(
            look,
            "the node serves",
            not_yet=(ConnectionError,),
            otherwise=lambda: "its log",
            patience_s=0,
        )
    told = str(caught.value)
    assert "still not so: the node serves; the last answer: ConnectionError('refused')" in told
    assert told.endswith("\nits log")


async def test_a_wait_in_an_event_loop_lets_it_go_on() -> None:
    states: list[int] = []
    asyncio.get_running_loop().call_later(0, states.append, 7)

    async def look() -> int | None:
        return states[0] if states else None

    found: int = await wait_for_async(look, "a state")
    assert found == 7


def test_a_wait_for_a_change_says_what_was_there_instead() -> None:
    changed = threading.Condition()
    assert wait_for_change(changed, lambda: 3, "a number") == 3
    with pytest.raises(NeverCameAboutError, match="a number; the last answer: None"):
        wait_for_change(changed, lambda: None, "a number", patience_s=0)


async def test_a_wait_for_an_event_looks_again_with_each() -> None:
    changed = asyncio.Event()
    states = iter([None, None, 5])
    loop = asyncio.get_running_loop()
    loop.call_soon(changed.set)
    loop.call_later(0, lambda: loop.call_soon(changed.set))
    assert await wait_for_event(changed, lambda: next(states), "a number") == 5


async def test_a_wait_for_an_event_says_what_was_there_instead() -> None:
    with pytest.raises(NeverCameAboutError, match="a number; the last answer: False"):
        await wait_for_event(asyncio.Event(), lambda: False, "a number", patience_s=0)


def test_a_thread_that_does_not_end_is_a_failure_that_names_its_work() -> None:
    may_end = threading.Event()

    def hang() -> None:
        may_end.wait()

    threads = Threads()
    threads.patience_s = 0.0
    threads.start(hang)
    with pytest.raises(AssertionError, match=r"a thread does not end: .*\(hang\)"):
        threads.join()
    assert threads.are_alive
    threads.patience_s = PATIENCE_S
    may_end.set()
    threads.join()
    assert not threads.are_alive
