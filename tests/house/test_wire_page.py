"""Every example of docs/wire.md runs and prints what the page shows; every name it lists exists."""

import doctest
import importlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.programs import run_python
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

import kvorum.wire

PAGE = ROOT / "docs" / "wire.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULE_ROW = re.compile(r"^\| `(kvorum\.wire[\w.]*)` \| (.+?) \| ", re.MULTILINE)
QUOTED_NAME = re.compile(r"`(\w+)`")
MESSAGES = "kvorum.wire.messages"


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page: its title and the text of its Python blocks."""

    title: str
    blocks: tuple[str, ...]


def sections(text: str) -> list[Section]:
    """The sections that hold Python, in order."""
    titles_and_bodies = SECTION.split(text)[1:]
    pairs = zip(titles_and_bodies[::2], titles_and_bodies[1::2], strict=True)
    found = [Section(title, tuple(FENCED_PYTHON.findall(body))) for title, body in pairs]
    return [section for section in found if section.blocks]


def report_of(section: Section) -> tuple[int, str]:
    """Run a section's examples in one namespace: how many there were, and what differed."""
    test = doctest.DocTestParser().get_doctest(
        "\n".join(section.blocks), {}, section.title, str(PAGE), 0
    )
    printed: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=printed.append)
    return len(test.examples), "".join(printed)


@pytest.mark.parametrize("section", sections(PAGE.read_text("utf-8")), ids=lambda it: it.title)
def test_the_examples_of_a_section_print_what_the_page_shows(section: Section) -> None:
    count, differences = report_of(section)
    assert count > 0
    assert not differences, differences


def test_no_block_is_left_out() -> None:
    text = PAGE.read_text("utf-8")
    blocks = [block for section in sections(text) for block in section.blocks]
    assert len(blocks) == text.count("```python")
    assert [block for block in blocks if not block.startswith(">>> ")] == []


@pytest.mark.parametrize(
    ("example", "difference"),
    [(">>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"), (">>> 1 // 0\n0\n", "ZeroDivisionError")],
)
def test_an_example_that_prints_something_else_is_found(example: str, difference: str) -> None:
    _, differences = report_of(Section("wrong", (example,)))
    assert difference in differences


def test_every_name_in_the_table_of_modules_exists() -> None:
    listed = dict(MODULE_ROW.findall(PAGE.read_text("utf-8")))
    assert "kvorum.wire.headers" in listed
    missing = [
        f"{module}: {name}"
        for module, names in listed.items()
        for name in QUOTED_NAME.findall(names)
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


# -- what comes with it ------------------------------------------------------------------------


def wire_modules() -> list[str]:
    """Every module of the protocol but the generated ones, of which one is enough."""
    found: list[str] = []
    for folder in map(Path, kvorum.wire.__path__):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(("kvorum.wire", *parts)).removesuffix(".__init__")
            if not name.startswith(MESSAGES):
                found.append(name)
    return sorted({*found, f"{MESSAGES}.fetch"})


@pytest.mark.process
@pytest.mark.parametrize("module", wire_modules())
def test_importing_a_module_brings_nothing_of_a_node(module: str) -> None:
    program = f"import sys; import {module}; print(*sys.modules)"
    done = run_python("-c", program, timeout_s=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert module in loaded
    assert {"asyncio", "rich", "immutables", "cramjam"}.isdisjoint(loaded)
    rooms = {name for name in loaded if name.startswith("kvorum.")}
    assert [name for name in sorted(rooms) if not name.startswith("kvorum.wire")] == []
