"""The tiers of the tests by what they cost: chosen by ``--tier``, held by a guard.

A test's tier follows from the folder it is in, from its marks, and from the fixtures it asks for:

- ``quick``: `unit`, `model` and `house`: no process, no socket, no Java, no Spark.
- ``test``: also servers in the test's process, and partners that all tests of a worker share.
- ``all``: also a Java process or several processes of the test's own, and what is marked ``slow``.

A tier holds those before it. Without ``--tier`` nothing is left out. A test in a quick folder that
opens a socket or starts a process fails, wherever it does so; the failure says where it belongs.
"""

import importlib
import sys
import threading
from collections.abc import Generator, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.fixtures import FixtureDef

SPLIT_FOLDER: Final = "tests/model/"
"""Its files have few tests that take long and share nothing, so test processes divide them up."""
HOUSE_FOLDER: Final = "tests/house/test_"
QUICK_FOLDERS: Final = frozenset({"unit", "model", "house"})
OWN_JAVA: Final = "java"
"""The fixture that lets a test start Java processes."""
FORBIDDEN_WHEN_QUICK: Final = frozenset({"socket.bind", "socket.connect", "subprocess.Popen"})
"""Audit events of Python (PEP 578) that a quick test does not cause."""


class Tier(IntEnum):
    """A tier; a higher one costs more."""

    QUICK = 0
    TEST = 1
    ALL = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses a tier."""
    names = [tier.name.lower() for tier in Tier]
    parser.addoption("--tier", choices=names, help="leave out the tests of later tiers")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests of this process."""
    config.pluginmanager.register(QuickGuard(), "quick-guard")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the folders that have nothing quick where only that is asked for."""
    tests = config.rootpath / "tests"
    if config.getoption("--tier") != "quick" or tests not in collection_path.parents:
        return None
    return True if collection_path.relative_to(tests).parts[0] not in QUICK_FOLDERS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of later tiers."""
    chosen: str | None = config.getoption("--tier")
    if chosen is None:
        return
    limit = Tier[chosen.upper()]
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if tier_of(item) <= limit else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each test process whole files: what their fixtures make is made once."""
    # It has no type hints, and is not there with pytest alone.
    scheduling: Any = importlib.import_module("xdist.scheduler")
    scheduler = scheduling.LoadFileScheduling(config, log)
    scheduler._split_scope = _unit_of_work
    return scheduler


def _unit_of_work(nodeid: str) -> str:
    """Return what one test process runs as a whole: a file, with some exceptions."""
    if nodeid.startswith(SPLIT_FOLDER):
        return nodeid
    # All of these read the whole source, which one process does once.
    return HOUSE_FOLDER if nodeid.startswith(HOUSE_FOLDER) else nodeid.partition("::")[0]


def tier_of(item: pytest.Item) -> Tier:
    """Return the first tier that runs a test."""
    if item.get_closest_marker("slow") is not None:
        return Tier.ALL
    by_folder = Tier.QUICK if is_in_quick_folder(item) else Tier.TEST
    if item.get_closest_marker("process") is not None:
        by_folder = Tier.TEST
    if item.get_closest_marker("sample") is not None:
        return by_folder
    return max(by_folder, tier_of_fixtures(item))


def is_in_quick_folder(item: pytest.Item) -> bool:
    """Return whether a test's folder is one of those without sockets and processes."""
    return item.path.relative_to(item.config.rootpath / "tests").parts[0] in QUICK_FOLDERS


def tier_of_fixtures(item: pytest.Item) -> Tier:
    """Return ALL where a test may start a Java process of its own.

    A fixture of the whole session is a partner that all tests of a worker share.
    """
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return Tier.QUICK
    definitions: dict[str, tuple[FixtureDef[object], ...]] = dict(info.name2fixturedefs)
    asked = [*info.argnames, *info.initialnames]
    return Tier.ALL if OWN_JAVA in _reached(asked, definitions) else Tier.QUICK


def _reached(
    asked: Iterable[str], definitions: dict[str, tuple[FixtureDef[object], ...]]
) -> set[str]:
    """Return the fixtures that are asked for otherwise than by a shared one."""
    found: set[str] = set()
    todo = list(asked)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        for definition in definitions.get(name, ())[-1:]:
            if definition.scope != "session":
                todo += definition.argnames
    return found


class QuickGuard:
    """Fails a quick test that opens a socket or starts a process, at the place where it does."""

    def __init__(self) -> None:
        self._others: frozenset[int] | None = None
        self._done: list[str] = []
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[object, ...]) -> None:
        """Refuse it, unless a thread does it that an earlier test left behind."""
        if event not in FORBIDDEN_WHEN_QUICK or self._others is None:
            return
        if threading.get_ident() not in self._others:
            self._done.append(f"{event}{arguments[-2:]!r}")
            raise NotQuickError(
                f"{event}: tests of {', '.join(sorted(QUICK_FOLDERS))} open no socket and start "
                "no process; see tests/README.md for the folders of those that do"
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Watch a test that has to be quick; one that hid the refusal fails as well."""
        if not is_in_quick_folder(item) or item.get_closest_marker("process") is not None:
            yield
            return
        main = threading.get_ident()
        self._done = []
        self._others = frozenset(
            thread.ident
            for thread in threading.enumerate()
            if thread.ident is not None and thread.ident != main
        )
        try:
            yield
        finally:
            self._others = None
        if self._done:
            raise NotQuickError(f"a quick test did this: {', '.join(self._done)}")


class NotQuickError(AssertionError):
    """A test does more than its folder allows."""
