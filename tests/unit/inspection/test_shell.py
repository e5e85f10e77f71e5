"""The metadata shell: its lines, its paths, and its tree of an image."""

import sys

import pytest

from kvorum.inspection.folded_log import Provenance
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
from kvorum.inspection.shell.help_text import (
    column_layout,
    column_lines,
    titled_lines,
    usage_lines,
    wrapped_lines,
)
from kvorum.inspection.shell.image_tree import (
    DanglingNameError,
    Directory,
    Node,
    Software,
    find_lines,
    shell_tree,
    time_text,
    tree_lines,
)
from kvorum.inspection.shell.lines import (
    LINES_MAX,
    LineHistory,
    last_word_start,
    quoted,
    split_line,
)
from kvorum.inspection.shell.paths import effective_paths, find_nodes, glob_pattern, path_components
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

TOPIC_ID = bytes(range(16))
TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


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
    assert split_line(f"cat {quoted(word, like=like, is_complete=True)}x") == ["cat", word, "x"]
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


@pytest.mark.parametrize("line", ["!{}", "!-{}"])
def test_a_number_of_thousands_of_digits_designates_no_line(line: str) -> None:
    history = LineHistory()
    history.add("pwd")
    digits = sys.get_int_max_str_digits() + 1
    too_large = line.format("9" * digits)
    assert history.expand(too_large) == too_large
    assert history.expand(line.format("0" * digits + "1 ")) == "pwd"


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


def directory(**nodes: Node) -> Directory:
    return Directory(lambda: nodes, nodes.get)


TREE = directory(
    one=directory(a="1", b="2", ab="3"), two=directory(a="4", deep=directory(x="5")), file="6"
)


def found(glob: str, working_directory: str = "/") -> list[str]:
    return [each.absolute_path for each in find_nodes(TREE, glob, working_directory)]


@pytest.mark.parametrize(
    ("path", "components"),
    [
        ("/", []),
        ("", ["here", "now"]),
        ("a//b/", ["here", "now", "a", "b"]),
        ("../a", ["here", "a"]),
        ("../../../../a", ["a"]),
        ("/a/./../b", ["b"]),
        ("...", ["here", "now", "..."]),
    ],
)
def test_paths_from_a_working_directory(path: str, components: list[str]) -> None:
    assert path_components(path, "/here/now") == components


def test_no_path_is_the_working_directory() -> None:
    assert effective_paths([]) == effective_paths(["", ""]) == ["."]
    assert effective_paths(["", "a"]) == ["a"]


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("/", ["/"]),
        ("/*", ["/file", "/one", "/two"]),
        ("one/?", ["/one/a", "/one/b"]),
        ("{one,two}/a*", ["/one/a", "/one/ab", "/two/a"]),
        ("/*/*/*", ["/two/deep/x"]),
        ("/*/..", ["/"]),
        ("file/..", ["/"]),
        ("file/x", []),
        ("one/c", []),
        ("one/[a]*", []),
        (r"one/\a*", ["/one/a", "/one/ab"]),
    ],
)
def test_wildcards_find_nodes_in_order(glob: str, paths: list[str]) -> None:
    assert found(glob) == paths


def test_wildcards_are_relative_to_the_working_directory() -> None:
    assert found("*", "/two") == ["/two/a", "/two/deep"]
    assert found("../one/b", "/two/deep") == []
    assert found("../../one/b", "/two/deep") == ["/one/b"]


@pytest.mark.parametrize("component", ["a", "", "a,b", "}", "{a", "{a{b}}", r"\*", "a\\", "a.b"])
def test_components_without_wildcards_match_only_themselves(component: str) -> None:
    assert glob_pattern(component) is None


def test_a_backslash_at_the_end_stands_for_the_anchor_of_the_pattern() -> None:
    pattern = glob_pattern("a*\\")
    assert pattern is not None
    assert pattern.fullmatch("abc$")
    assert not pattern.fullmatch("abc")


def test_a_wildcard_that_meets_a_name_without_a_node_is_an_error() -> None:
    dangling = Directory(lambda: ["gone"], lambda _: None, "the directory")
    with pytest.raises(DanglingNameError, match="Expected gone to be a valid child of the dir"):
        list(find_nodes(dangling, "*", "/"))
    assert list(find_nodes(dangling, "gone", "/")) == []


NAMES = ["abc", "def", "longer-name", "g", "hi"]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["abc", "def", "longer-name", "g", "hi"]),
        (7, ["abc", "def", "longer-name", "g", "hi"]),
        (21, ["abc          g", "def          hi", "longer-name  "]),
        (22, ["abc  longer-name  hi", "def  g".ljust(18)]),
        (80, ["abc  def  longer-name  g  hi"]),
    ],
)
def test_columns(width: int | None, lines: list[str]) -> None:
    assert list(column_lines(NAMES, width)) == lines


def test_a_layout_may_fill_the_screen_and_not_more() -> None:
    exact = sum(len(name) + 2 for name in NAMES)
    assert len(column_layout(NAMES, exact).widths) == len(NAMES)
    assert len(column_layout(NAMES, exact - 1).widths) < len(NAMES)


def test_nothing_is_listed_as_nothing() -> None:
    assert list(column_lines([], 80)) == []


def tree_of(*records: Message) -> Directory:
    image = MetadataImage().apply_all((record, 0, 0) for record in records)
    return shell_tree(image, Provenance(9, 2, 1_700_000_000_500), Software("1", "abc"))


def at(node: Node | None, path: str) -> Node | None:
    for name in path.split("/"):
        assert isinstance(node, Directory)
        node = node.child(name)
    return node


def quota(name: str | None) -> ClientQuotaRecord:
    return ClientQuotaRecord([ClientQuotaRecord.EntityData("user", name)], "rate", 1.5)


TOPIC = (
    TopicRecord("t", TOPIC_ID),
    PartitionRecord(10, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0),
    PartitionRecord(9, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0),
)


def test_an_empty_image_has_all_its_directories() -> None:
    lines = "\n".join(tree_lines(tree_of()))
    assert "  features:\n    metadataVersion:\n      Optional.empty\n" in lines
    assert "  provenance:\n    offset 9, epoch 2, time 2023-11-14T22:13:20.5Z[UTC]\n" in lines
    assert lines.endswith("local:\n  commitId:\n    abc\n  version:\n    1")


def test_a_topic_is_reached_by_name_and_by_id() -> None:
    tree = tree_of(*TOPIC)
    by_name, by_id = (
        at(tree, "image/topics/byName/t"),
        at(tree, f"image/topics/byId/{TOPIC_ID_TEXT}"),
    )
    assert isinstance(by_name, Directory)
    assert by_name.sorted_names() == ["10", "9", "id", "name"]
    assert by_id is not None
    assert list(tree_lines(by_id)) == list(tree_lines(by_name))


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "image/topics/byName/other",
        "image/topics/byId/t",
        f"image/topics/byId/{TOPIC_ID_TEXT[:-1]}",
        "image/topics/byName/t/8",
        "image/topics/byName/t/-1",
        "image/cluster/brokers/1",
        "image/cluster/brokers/one",
        "image/configs/TOPIC:t",
        "image/clientQuotas/user(alice)",
        "image/acls/byId/t",
        "image/scram/PLAIN",
        "image/delegationToken/token",
    ],
)
def test_a_missing_path_is_none(path: str) -> None:
    assert at(tree_of(*TOPIC), path) is None


def test_a_default_quota_has_a_name_that_leads_nowhere() -> None:
    tree = tree_of(FeatureLevelRecord("metadata.version", 30), quota(None), quota("a(b)"))
    quotas = at(tree, "image/clientQuotas")
    assert quotas is not None
    assert list(tree_lines(quotas)) == [":", r"user(a\(b\)):", "  rate:", "    1.5"]
    with pytest.raises(DanglingNameError, match="Expected  to be a valid child of /image/client"):
        list(find_lines(tree, "/"))


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z[UTC]"),
        (-1, "1969-12-31T23:59:59.999Z[UTC]"),
        (1_709_164_800_020, "2024-02-29T00:00:00.02Z[UTC]"),
        (253_402_300_800_000, "+10000-01-01T00:00:00Z[UTC]"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z[UTC]"),
    ],
)
def test_times(timestamp_ms: int, text: str) -> None:
    assert time_text(timestamp_ms) == text
