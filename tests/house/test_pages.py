"""The project's pages: links lead somewhere, and examples and commands print what is shown."""

import doctest
import importlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tests.support.node_process import run_python
from tests.support.page_blocks import PAGES, Shown, page_blocks, shown_commands
from tests.support.pasted_shell import shell_environment
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

import kvorum.wire

LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT: Final = "…"
COMMANDS_MIN: Final = 12
WIRE_PAGE = ROOT / "docs" / "wire.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULE_ROW = re.compile(r"^\| `(kvorum\.wire[\w.]*)` \| (.+?) \| ", re.MULTILINE)
QUOTED_NAME = re.compile(r"`(\w+)`")
MESSAGES = "kvorum.wire.messages"


def text_of(page: Path) -> str:
    """Return a page without its blocks of code, whose comments look like headings."""
    return CODE_BLOCK.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> frozenset[str]:
    """Return the names by which the sections of a page are linked, as GitHub makes them."""
    headings = (heading.lower() for heading in HEADING.findall(text_of(page)))
    return frozenset(re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in headings)


def dead_links(page: Path) -> Iterator[str]:
    """Yield the links of a page that lead nowhere."""
    for path, anchor in LINK.findall(text_of(page)):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{path}#{anchor}" if anchor else path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_sections(page: Path) -> None:
    assert list(dead_links(page)) == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {path for path, _ in LINK.findall(text_of(index))}
    pages = {page.relative_to(index.parent).as_posix() for page in index.parent.rglob("*.md")}
    assert pages - linked == {index.name}


def offline_commands() -> list[Shown]:
    """Return the commands of the pages on offline tools, in their order."""
    blocks = page_blocks("docs/tools.md", "console") + page_blocks("docs/recovery.md", "console")
    return [shown for block in blocks for shown in shown_commands(block)]


def pattern(lines: list[str]) -> str:
    """Return the pattern of an output; what is left out may be lines, or the end of one."""
    return "".join(map(_line_pattern, lines))


def _line_pattern(line: str) -> str:
    if line == LEFT_OUT:
        return r"(?:.*\n)*?"
    return re.escape(line.removesuffix(LEFT_OUT)) + (r".*\n" if line.endswith(LEFT_OUT) else r"\n")


@pytest.mark.process
@pytest.mark.slow
def test_every_command_prints_what_is_shown(golden_sets: Path, tmp_path: Path) -> None:
    folder = tmp_path / "nodes"
    shutil.copytree(golden_sets / "dynamic-4.3.1" / "metadata", folder)
    shown = offline_commands()
    assert len(shown) >= COMMANDS_MIN
    for command, lines in shown:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env=shell_environment(),
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
    block = next(one for one in offline_commands() if any(change in line for line in one.lines))
    whole = "".join(f"{line}\n" for line in block.lines)
    assert re.fullmatch(pattern(block.lines), whole)
    assert not re.fullmatch(pattern(block.lines), whole.replace(change, "other"))


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
        "\n".join(section.blocks), {}, section.title, str(WIRE_PAGE), 0
    )
    printed: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=printed.append)
    return len(test.examples), "".join(printed)


@pytest.mark.parametrize("section", sections(WIRE_PAGE.read_text("utf-8")), ids=lambda it: it.title)
def test_the_examples_of_a_section_print_what_the_page_shows(section: Section) -> None:
    count, differences = report_of(section)
    assert count > 0
    assert not differences, differences


def test_no_block_is_left_out() -> None:
    text = WIRE_PAGE.read_text("utf-8")
    blocks = [block for section in sections(text) for block in section.blocks]
    assert blocks == page_blocks("docs/wire.md", "python")
    assert [block for block in blocks if not block.startswith(">>> ")] == []


@pytest.mark.parametrize(
    ("example", "difference"),
    [(">>> 1 + 1\n3\n", "Expected:\n    3\nGot:\n    2"), (">>> 1 // 0\n0\n", "ZeroDivisionError")],
)
def test_an_example_that_prints_something_else_is_found(example: str, difference: str) -> None:
    _, differences = report_of(Section("wrong", (example,)))
    assert difference in differences


def test_every_name_in_the_table_of_modules_exists() -> None:
    listed = dict(MODULE_ROW.findall(WIRE_PAGE.read_text("utf-8")))
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
