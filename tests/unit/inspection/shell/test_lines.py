"""Lines of the metadata shell: their words, the history, and the grammar of commands."""

import pytest

from kvorum.inspection.shell.grammar import (
    HELP,
    Count,
    Grammar,
    GrammarError,
    HelpAskedError,
    Option,
    Positional,
    parse,
)
from kvorum.inspection.shell.help_text import titled_lines, usage_lines, wrapped_lines
from kvorum.inspection.shell.lines import (
    LINES_MAX,
    LineHistory,
    last_word_start,
    quoted,
    split_line,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  ls  /a\tb ", ["ls", "/a", "b"]),
        ("cat 'a b' \"c'd\"", ["cat", "a b", "c'd"]),
        ("cat a' b'", ["cat", "a' b'"]),
        ("cat 'a b", ["cat", "a b"]),
        (r"cat a\ b \'c\\", ["cat", "a b", "'c\\"]),
        ("cat '' x", ["cat", "x"]),
        ("ls \\", ["ls"]),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert split_line(line) == words


@pytest.mark.parametrize(
    ("line", "start"),
    [("", 0), ("ls", 0), ("ls ", 3), ("ls a", 3), (r"ls a\ b", 3), ("ls 'a b", 3), ("ls 'a' b", 7)],
)
def test_where_the_last_word_begins(line: str, start: int) -> None:
    assert last_word_start(line) == start


@pytest.mark.parametrize("like", ["", "'", '"'])
@pytest.mark.parametrize("word", ["plain", "a b", "it's", 'say "x"', r"user(a\(b\))", "\\"])
def test_a_completed_word_is_read_back_as_it_was(word: str, like: str) -> None:
    text = quoted(word, like=like, is_complete=True)
    assert split_line(f"cat {text}x") == ["cat", word, "x"]
    assert split_line(quoted(word, like=like, is_complete=False)) == [word]


def test_history_leaves_out_repetitions_and_lines_that_begin_with_a_space() -> None:
    history = LineHistory()
    for line in ("ls", "ls", " cat", "", "pwd  ", "ls"):
        history.add(line)
    assert list(history.last_entries(None)) == [(0, "ls"), (1, "pwd"), (2, "ls")]
    assert list(history.last_entries(2)) == [(1, "pwd"), (2, "ls")]
    assert list(history.last_entries(-1)) == []
    assert history.expand("!pwd") == "pwd"


def test_history_forgets_the_oldest_lines_and_keeps_counting() -> None:
    history = LineHistory()
    for number in range(LINES_MAX + 2):
        history.add(f"ls {number}")
    entries = list(history.last_entries(None))
    assert (entries[0], len(entries)) == ((2, "ls 2"), LINES_MAX)
    assert history.expand("!3") == "ls 2"
    assert history.expand("!2") == "!2"


GRAMMAR = Grammar(
    Positional("targets", Count.ANY, "what to show"), (HELP, Option(("--file", "-f"), "", "FILE"))
)


@pytest.mark.parametrize(
    ("line", "words", "values"),
    [
        ("a b", ["a", "b"], {}),
        ("a -f x b", ["a", "b"], {"file": "x"}),
        ("-fx --fi=y", [], {"file": "y"}),
        ("-f=x=y -5 -", ["-5", "-"], {"file": "x=y"}),
        ("-- -f x --", ["-f", "x", "--"], {}),
    ],
)
def test_options_stand_anywhere(line: str, words: list[str], values: dict[str, str]) -> None:
    parsed = parse(GRAMMAR, line.split())
    assert (list(parsed.words), parsed.values) == (words, values)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a -x b", "unrecognized arguments: '-x'"),
        ("-f", "argument --file/-f: expected one argument"),
        ("-f -- x", "argument --file/-f: expected one argument"),
        ("--help=1", "argument -h/--help: ignore implicit argument '1'"),
        ("--=x", "ambiguous option: -- could match --file, --help"),
    ],
)
def test_what_breaks_the_rules(line: str, message: str) -> None:
    with pytest.raises(GrammarError) as error:
        parse(GRAMMAR, line.split())
    assert str(error.value) == message


@pytest.mark.parametrize("word", ["-h", "--help", "--h", "-hx"])
def test_help_is_asked_for(word: str) -> None:
    with pytest.raises(HelpAskedError):
        parse(GRAMMAR, ["a", word])


def test_how_many_words_an_argument_takes() -> None:
    for count in (Count.ONE, Count.SOME):
        with pytest.raises(GrammarError, match="too few arguments"):
            parse(Grammar(Positional("x", count, "")), [])
    for count in (Count.ONE, Count.MAYBE):
        with pytest.raises(GrammarError, match="unrecognized arguments: 'b c'"):
            parse(Grammar(Positional("x", count, "")), ["a", "b", "c"])
    with pytest.raises(GrammarError, match="unrecognized arguments: 'a'"):
        parse(Grammar(), ["a"])


def test_help_is_wrapped_and_justified() -> None:
    assert wrapped_lines("aa bb cc dd ee", 10) == ["aa  bb  cc", "dd ee"]
    lines = list(titled_lines("a title that is far too long", "help", 75))
    assert lines == ["  a title that is far too long", " " * 25 + "help"]
    assert list(usage_lines("x", ["[aaaa]", "[bbbb]"], 17)) == [
        "usage: x [aaaa]",
        "         [bbbb]",
    ]
