"""Plain technical English without a dialect, a machine or a package index.

The rule covers the rooms in `PLAIN_ROOMS`. A room is added when its text has been rewritten.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest
from tests.support.source_tree import ROOT, SourceFile, python_files, tracked_files

PLAIN_ROOMS = (
    *("benchmarks", "codegen/kvorum/codegen", "spark/kvorum/spark"),
    *("storage/kvorum/storage", "wire/kvorum/wire"),
    *(f"server/kvorum/{room}" for room in ("broker", "cli", "controller", "coordinator")),
    *(f"server/kvorum/{room}" for room in ("groups", "history", "inspection", "log_files")),
    *(f"server/kvorum/{room}" for room in ("internal_topics", "metadata", "node", "raft")),
    *("server/kvorum/client_histories", "server/kvorum/quorum_client"),
    *("server/kvorum/simulation", "server/kvorum/testing"),
)
DIALECT = {
    r"\b(?:is|are) who\b": "name the subject: 'a node that … is …'",
    r"\bwho (?:is|are) (?:not|no)\b": "name the subject: 'a node that is not …'",
    r"\b(?:nobody|somebody|everybody|anybody)\b": "name the node, the client or the replica",
    r"\banew\b": "again",
    r"\bwhoever\b": "name the subject: 'the caller that …', 'every node that …'",
    r"^who\b": "begin with a noun, or with an imperative",
    r"\btell\b": "return, report, log, send or show",
    r"\btells (?:of|whether|which|that|who|how|what|when|where)\b": "returns, reports or shows",
    r"\b(?:is|are|was|were|be|been|not|yet to be) told\b": "gets, receives; is reported, is sent",
    r"\b(?:say|says|said|saying) so\b": "print, report or return it",
    r"\b(?:has|have|had) it not\b": "'does not have it'",
    r"\bsince that was so\b": "name the event: 'since the last time that …'",
    r"\bbe like more than\b": "name the rule: 'must meet … besides …'",
    r"\b(?:came|comes|come) of (?:it|that|them)\b": "the outcome, the result",
    r"\bnone (?:is|are) to be had\b|\bnone to be had\b": "'there is none', 'is not available'",
    r"\bas it is now\b|\bas they are now\b": "current",
    r"\bbegins? so\b|\bends? so\b": "'begins with this', 'ends in this way'",
}
FIRST_WORDS = re.compile(r"(?:What|Who|Whoever|Whatever|Where|How|Nobody|Whom)\b")
"""A docstring or a comment begins with a noun or a verb instead of these."""
ROOMS_OF_FIRST_WORDS = (*PLAIN_ROOMS, "tests")
NAMES = re.compile(r"_(?:nobody|somebody|whoever|anew|what_is_no|(?:is|are)_told)(?:_|$)")
"""Words that the name of a test does without: it names the node or the client, and a verb."""
PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), hint) for pattern, hint in DIALECT.items())
TEXTS = {".py", ".md", ".toml", ".txt", ".json", ".java", ".yml", ".yaml", ".cfg", ".xml", ""}
SIZE_BYTES_MAX = 2_000_000
ALLOWED = {"tests/house/test_plain_words.py", "LICENSE"}
HOME_FOLDER = re.compile(r"/(?:home|root|Users)/\w+/")
INDEX_HOST = re.compile(r"https?://[\w.-]*(?:maven|pypi|pythonhosted|npm|debian)[\w.-]*")


def prose(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield each docstring and comment of a file with its line, as one line of text."""
    for node in file.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield node.lineno, " ".join(text.split())
    yield from comments(file.text)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield each comment with the line where it begins; a block of comment lines is one comment."""
    blocks: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, words = token.start[0], token.string.lstrip("# ")
        if token.line.lstrip().startswith("#") and blocks and blocks[-1][1] == line - 1:
            start, _, before = blocks.pop()
            blocks.append((start, line, f"{before} {words}"))
        else:
            blocks.append((line, line, words))
    return ((start, words) for start, _, words in blocks)


def dialect_in(text: str) -> list[str]:
    """Return for each dialect phrase in `text` the phrase and what to write instead."""
    return [
        f"{match[0]!r}: {hint}" for pattern, hint in PATTERNS if (match := pattern.search(text))
    ]


@pytest.mark.parametrize("room", PLAIN_ROOMS)
def test_docstrings_and_comments_are_plain_technical_english(room: str) -> None:
    found = [
        f"{file.name}:{line}: {problem}"
        for file in python_files(room)
        for line, text in prose(file)
        for problem in dialect_in(text)
    ]
    assert found == []


@pytest.mark.parametrize("room", ROOMS_OF_FIRST_WORDS)
def test_docstrings_and_comments_begin_with_a_noun_or_a_verb(room: str) -> None:
    found = [
        f"{file.name}:{line}: {text[:60]}"
        for file in python_files(room)
        for line, text in prose(file)
        if FIRST_WORDS.match(text) and not text.endswith("?")
    ]
    assert found == []


def test_names_of_tests_are_plain_english() -> None:
    found = [
        f"{file.name}:{node.lineno}: {node.name}"
        for file in python_files("tests")
        for node in file.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and NAMES.search(node.name)
    ]
    assert found == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Ready is who is not mentioned.",
        "Tell whether `needed` voters have since that was so last.",
        "One whose field is None has it not.",
        "Requests that have to be like more than their schema says.",
        "Who leads, and since which epoch.",
        "A broker says how it is and what it wants, and is told what it is.",
        "Keep what whoever asks must know.",
        "The file is made anew where nobody reads it.",
        "Take a controller out of the voters, and say so.",
    ],
)
def test_the_rule_finds_the_sentences_it_was_made_for(sentence: str) -> None:
    assert dialect_in(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Return whether a majority has voted.",
        "A replica that is not a voter does not vote.",
        "An authorizer decides who may do what.",
    ],
)
def test_the_rule_leaves_plain_sentences_alone(sentence: str) -> None:
    assert dialect_in(sentence) == []


def test_a_comment_over_several_lines_is_read_as_one() -> None:
    source = "# A broker is\n# told nothing.\nvalue = 1  # alone\n\n# Another one.\n"
    assert list(comments(source)) == [
        (1, "A broker is told nothing."),
        (3, "alone"),
        (5, "Another one."),
    ]


@pytest.mark.process
def test_no_path_of_a_machine_and_no_index_address() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked_files()
        if path.suffix in TEXTS
        and str(path.relative_to(ROOT)) not in ALLOWED
        and path.stat().st_size < SIZE_BYTES_MAX
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if HOME_FOLDER.search(line) or INDEX_HOST.search(line)
    ]
    assert found == []
