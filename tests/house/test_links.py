"""The links between the project's pages lead somewhere, and the index of docs/ names every page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


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
