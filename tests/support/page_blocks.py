"""The blocks of code in the project's pages, each with the language that it is fenced with.

Tests name the blocks that they run by `page_block` and `page_blocks`, with literal arguments:
`tests/house/test_page_blocks.py` reads these calls, and finds the blocks that no test asks for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Final, NamedTuple

from tests.support.source_tree import ROOT

PAGES: Final = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]
)
PROMPT: Final = "$ "
FENCED: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, its language, and its text as it is pasted."""

    page: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}: {self.kind or 'no kind'}: {self.text.splitlines()[0]}"


def blocks_in(text: str, page: str) -> list[Block]:
    """Return the blocks of a page's text, in their order."""
    return [Block(page, kind, dedent(body)) for _, kind, body in FENCED.findall(text)]


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, which is named by its path from the project's root."""
    return blocks_in((ROOT / page).read_text("utf-8"), page)


def all_blocks() -> list[Block]:
    """Return the blocks of all pages."""
    return [block for page in PAGES for block in blocks_of(name_of(page))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def page_blocks(page: str, kind: str) -> list[str]:
    """Return the texts of all blocks of one kind in a page."""
    return [block.text for block in blocks_of(page) if block.kind == kind]


def page_block(page: str, kind: str, words: str) -> str:
    """Return the text of the one block of this kind that contains the words."""
    (found,) = [one for one in blocks_of(page) if one.kind == kind and words in one.text]
    return found.text


def at_places(snippet: str, places: Mapping[str, str]) -> str:
    """Return a snippet with paths and addresses of a test, each in place of one that it shows."""
    for shown, place in places.items():
        assert shown in snippet, f"the snippet does not show {shown}"
        snippet = snippet.replace(shown, place)
    return snippet


class Shown(NamedTuple):
    """A command of a block, and the lines below it."""

    command: str
    lines: list[str]


def shown_commands(block: str) -> list[Shown]:
    """Return the commands of a block of the kind `console`, in their order."""
    found: list[Shown] = []
    for line in block.replace("\\\n", "").splitlines():
        if line.startswith(PROMPT):
            found.append(Shown(line.removeprefix(PROMPT), []))
        else:
            found[-1].lines.append(line)
    return found


def typed(block: str) -> str:
    """Return the commands of a block of the kind `console`, as one types them."""
    return "".join(f"{shown.command}\n" for shown in shown_commands(block))
