"""The files that a repository's visitors and tools look for agree with each other."""

import re
import tomllib

from tests.support.source_tree import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOW = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
PRE_COMMIT = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_workflow_tests_on_every_python_that_is_claimed() -> None:
    matrix = re.search(r"python: \[(.+)\]", WORKFLOW)
    assert matrix is not None
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert re.findall(r'"([\d.]+)"', matrix[1]) == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert "run: make test" in WORKFLOW


def test_pre_commit_runs_what_make_check_all_runs() -> None:
    recipes = re.findall(r"^check(?:-all)?: .*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)
    commands = re.findall(r"\$\(BIN\)/(.+)", "".join(recipes))
    assert len(commands) >= 7
    entries = re.findall(r"entry: \.venv/bin/(.+)", PRE_COMMIT)
    assert [words_of(entry) for entry in entries] == [words_of(command) for command in commands]


def words_of(command: str) -> set[str]:
    """The words of a command without the files it is given."""
    return set(command.split()) - {".", "--force-exclude"}


def test_pre_commit_needs_no_network() -> None:
    assert re.findall(r"repo: (\S+)", PRE_COMMIT) == ["local"]
    assert set(re.findall(r"language: (\S+)", PRE_COMMIT)) == {"system"}


def test_every_tool_that_is_run_has_its_version_in_constraints() -> None:
    pinned = set(re.findall(r"^([\w-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    asked = {
        re.split(r"[\[<>=; ]", need)[0]
        for needs in PROJECT["optional-dependencies"].values()
        for need in needs
    }
    assert asked - pinned == set()
