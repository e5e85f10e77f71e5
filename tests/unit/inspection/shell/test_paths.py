"""Paths, wildcards and columns of the metadata shell, on trees made for them."""

import pytest

from kvorum.inspection.shell.help_text import column_layout, column_lines
from kvorum.inspection.shell.node import DanglingNameError, Directory, Node
from kvorum.inspection.shell.paths import effective_paths, find_nodes, glob_pattern, path_components


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
