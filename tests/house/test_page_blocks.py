"""The blocks of code in the project's pages: each states its kind, and a test runs what can run."""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

import pytest
from tests.support.page_blocks import PROMPT, Block, all_blocks, blocks_in, shown_commands
from tests.support.source_tree import python_files

RUNNABLE: Final = frozenset({"console", "python", "sh", "sql"})
ONLY_SHOWN: Final = frozenset({"properties", "text", "yaml"})
"""The kinds that are not pasted into a shell or a program: outputs, layouts and files."""
ONE, ALL = "page_block", "page_blocks"
"""The functions that tests ask for blocks with."""
NOT_RUN: Final = {
    ("README.md", "make run"): "a new environment; tests/process/test_dev_options.py runs the rest",
    ("README.md", "make test"): "this run, or one that has it in it",
    ("docs/releasing.md", "make dist"): "tests/house/release builds the same archives",
}
"""The commands that no test pastes, and the reason for each."""
PAGE: Final = """
```python
print(1)
```

```console
$ kvorum --version
```

   ```sh
   kvorum dev
   ```
"""


def kind_errors(blocks: Iterable[Block]) -> list[str]:
    """Return the blocks of no known kind, and those that are not what their kind says."""
    return [
        str(block)
        for block in blocks
        if block.kind not in RUNNABLE | ONLY_SHOWN
        or (block.kind == "console") != block.text.startswith(PROMPT)
    ]


def requests_in(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Yield page, kind and words of each call in a test that asks for blocks."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in {ONE, ALL}:
            continue
        words = tuple(ast.literal_eval(argument) for argument in node.args)
        yield words if node.func.id == ONE else (*words, "")


def left_out(blocks: Iterable[Block], requests: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the blocks that could be run, and that no request is for."""
    asked = list(requests)
    return [
        str(block)
        for block in blocks
        if block.kind in RUNNABLE
        and not is_excepted(block)
        and not any(
            (block.page, block.kind) == (page, kind) and words in block.text
            for page, kind, words in asked
        )
    ]


def is_excepted(block: Block) -> bool:
    """Return whether all commands of a block are among those that are not run."""
    if block.kind != "console":
        return False
    commands = (shown.command.partition("#")[0].strip() for shown in shown_commands(block.text))
    return all((block.page, command) in NOT_RUN for command in commands)


def all_requests() -> list[tuple[str, ...]]:
    """Return what all tests ask for."""
    return [request for file in python_files("tests") for request in requests_in(file.tree)]


def test_every_block_states_its_kind() -> None:
    assert kind_errors(all_blocks()) == []


def test_a_test_runs_every_block_that_can_run() -> None:
    assert left_out(all_blocks(), all_requests()) == []


def test_a_command_that_is_not_run_is_in_its_page() -> None:
    shown = {
        (block.page, command.partition("#")[0].strip())
        for block in all_blocks()
        if block.kind == "console"
        for command, _ in shown_commands(block.text)
    }
    assert NOT_RUN.keys() <= shown


PYTHON, CONSOLE, SH = map(str, blocks_in(PAGE, "a.md"))


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("", [PYTHON, CONSOLE, SH]),
        ('page_block("a.md", "sh", "dev")', [PYTHON, CONSOLE]),
        ('page_block("b.md", "sh", "dev")\npage_blocks("a.md", "python")', [CONSOLE, SH]),
    ],
)
def test_a_block_without_a_test_is_found(test: str, found: list[str]) -> None:
    assert left_out(blocks_in(PAGE, "a.md"), requests_in(ast.parse(test))) == found


def test_a_block_of_no_kind_is_found() -> None:
    text = "```\nkvorum dev\n```\n\n```console\nkvorum dev\n```\n\n```text\n$ kvorum dev\n```\n"
    assert kind_errors(blocks_in(text, "a.md")) == [
        "a.md: no kind: kvorum dev",
        "a.md: console: kvorum dev",
        "a.md: text: $ kvorum dev",
    ]
