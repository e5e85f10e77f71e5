"""The mutation ledger: every bug can be put in, is known to be caught, and a few are caught now.

``python -m tests.model.mutation`` puts all of them in, which takes a while, and writes the ledger.
"""

import ast
import os
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest
from tests.model.mutation.__main__ import SUITES
from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.in_process import put_in
from tests.model.mutation.ledger import Entry, read_ledger, renamed_entries
from tests.model.mutation.mutant import Edit, EditError, Kind, Mutant, Sources
from tests.model.mutation.scratch import Scratch
from tests.support.node_process import run_python
from tests.support.source_tree import ROOT, SOURCE_ROOTS

from kvorum.metadata.partition import PartitionRegistration, merge_partition_change
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.uuid_text import ZERO_UUID

BUGS_MIN = 60
CAUGHT_SHARE_MIN = 0.95
SHOWN_BY_SEEDS = {9: "P33", 31: "P14", 70: "P11"}
"""Worlds of a quorum in which KAFKA-20740 breaks a property; docs/verification.md names them."""
SAMPLE = ("logcabin#44", "hashicorp/raft#661", "KAFKA-15412", "KAFKA-13916")
LEDGER = read_ledger()
SOURCES = Sources()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_bug_can_be_put_in(mutant: Mutant) -> None:
    texts = mutant.mutated(SOURCES)
    assert texts
    for name, text in texts.items():
        compile(text, name, "exec")
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(SOURCES.texts[name]))


def test_the_ledger_is_of_these_bugs() -> None:
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS) >= BUGS_MIN
    assert {mutant.id: mutant.digest for mutant in MUTANTS} == {
        bug_id: entry.digest for bug_id, entry in LEDGER.items()
    }, "run python -m tests.model.mutation --new --search"


def test_every_bug_that_endangers_safety_is_caught() -> None:
    missed = [
        bug_id
        for bug_id, entry in LEDGER.items()
        if entry.kind == Kind.SAFETY.value and entry.caught_by is None
    ]
    assert missed == []


def test_nearly_all_bugs_are_caught() -> None:
    caught = [entry for entry in LEDGER.values() if entry.caught_by is not None]
    assert len(caught) >= CAUGHT_SHARE_MIN * len(LEDGER)


@pytest.mark.process
def test_what_catches_a_bug_is_there() -> None:
    """A test that got other parameters would have its bugs' results hang on nothing."""
    named = sorted({entry.caught_by for entry in LEDGER.values() if entry.caught_by is not None})
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    options = ("--collect-only", "-q", "-p", "no:cacheprovider")
    done = run_python("-m", "pytest", *options, *named, environment=environment)
    said = f"run python -m tests.model.mutation --search: {done.stdout}{done.stderr}"
    assert done.returncode == 0, said


@pytest.mark.parametrize(
    ("package", "tests"), SUITES, ids=[package or "all" for package, _ in SUITES]
)
def test_a_catching_test_is_looked_for_where_tests_are(
    package: str, tests: tuple[str, ...]
) -> None:
    assert [test for test in tests if not (ROOT / test).exists()] == []
    places = [ROOT / top / "kvorum" / package.replace(".", "/") for top in SOURCE_ROOTS]
    assert any(place.exists() or place.with_suffix(".py").exists() for place in places)


@pytest.mark.process
@pytest.mark.slow
def test_worlds_of_a_quorum_show_a_change_that_was_forgotten(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (bug,) = [mutant for mutant in MUTANTS if mutant.id == "KAFKA-20740"]
    with scratch.mutated(bug):
        broken = {seed: scratch.broken_in_quorum(seed) for seed in SHOWN_BY_SEEDS}
    assert broken == SHOWN_BY_SEEDS


@pytest.mark.process
@pytest.mark.slow
def test_a_sample_of_bugs_is_caught_now(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    for mutant in MUTANTS:
        if mutant.id in SAMPLE:
            caught_by = LEDGER[mutant.id].caught_by
            assert caught_by is not None
            with scratch.mutated(mutant):
                assert not scratch.run([caught_by]).has_passed
            assert scratch.run([caught_by]).has_passed


POLLING = "server/kvorum/raft/poll.py"
DRIVER = "server/kvorum/node/raft/driver.py"
LEADER = '''
    class Leader:
        """It leads, "é"."""

        def tick(self, now):
            # The quorum is asked first.
            if self.is_removed or (
                others  # all but this one
                and self.deadline <= now
            ):
                self.resign()
                return None
            try:
                self.send("é", self.deadline)
            except OSError as error:
                self.fail(error)
            except ValueError:
                raise
            return self.deadline
'''


def _sources(root: Path, files: Mapping[str, str]) -> Sources:
    for file, text in files.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return Sources(root)


def _edit(old: str, new: str = "", *, within: str = "Leader.tick", room: str = "") -> Edit:
    return Edit(within=within, old=old, new=new, room=room)


def _mutant(*edits: Edit) -> Mutant:
    return Mutant(id="a bug", cause="it was so", breaks="P1", kind=Kind.SAFETY, edits=edits)


def _entry(mutant: Mutant) -> Entry:
    return Entry(
        cause="it was so", breaks="P1", kind="safety", digest=mutant.digest, caught_by="a::test"
    )


def _normal(text: str) -> str:
    return ast.unparse(ast.parse(dedent(text)))


EDITS: dict[str, tuple[str, str, str, str]] = {
    "an expression within another": (
        "others and self.deadline <= now",
        "others or now",
        "others and self.deadline <= now",
        "others or now",
    ),
    "an expression by one that binds less": (
        "self.is_removed",
        "a if b else c",
        "if self.is_removed or",
        "if (a if b else c) or",
    ),
    "formatted otherwise": (
        "(self.is_removed or\n (others and (self.deadline <= now)))",
        "True",
        "self.is_removed or (others and self.deadline <= now)",
        "True",
    ),
    "two statements by one": (
        "  self.resign()\n  return None",
        "return 0",
        "self.resign()\n            return None",
        "return 0",
    ),
    "a statement by several": (
        "return self.deadline",
        "if now:\n    return 0\nreturn 1",
        "        return self.deadline",
        "        if now:\n            return 0\n        return 1",
    ),
    "a statement goes": ("self.resign()", "", "            self.resign()\n", ""),
    "all that a block holds goes": (
        "self.resign()\nreturn None",
        "",
        "self.resign()\n            return None",
        "pass",
    ),
    "an except clause goes": (
        "except OSError as error:\n    self.fail(error)",
        "",
        "        except OSError as error:\n            self.fail(error)\n",
        "",
    ),
}
"""An old piece and a new one, and what becomes of which part of the file."""


def test_an_edit_counts_in_this_process_until_it_is_undone() -> None:
    """Also for those who have taken the function out of its module before."""
    before = PartitionRegistration((1,), (ZERO_UUID,), (1,), leader=1)
    edit = Edit(
        within="merge_partition_change",
        old="partition.partition_epoch + 1",
        new="partition.partition_epoch + 2",
    )
    with pytest.MonkeyPatch.context() as patch:
        put_in(patch, [edit])
        assert merge_partition_change(before, PartitionChangeRecord()).partition_epoch == 2
    assert merge_partition_change(before, PartitionChangeRecord()).partition_epoch == 1


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_replaces_what_it_names_and_nothing_else(tmp_path: Path, what: str) -> None:
    old, new, before, after = EDITS[what]
    sources = _sources(tmp_path, {POLLING: LEADER})
    texts = _mutant(_edit(old, new)).mutated(sources)
    assert _normal(LEADER).count(before) == 1
    assert _normal(texts[POLLING]) == _normal(LEADER).replace(before, after)


def test_what_is_not_replaced_keeps_its_text(tmp_path: Path) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER})
    text = _mutant(_edit("return None", "return 0")).mutated(sources)[POLLING]
    assert text == dedent(LEADER).replace("return None", "return 0")


def test_several_edits_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER})
    edits = (_edit("return self.deadline", "a = 1\nreturn a"), _edit("self.is_removed", "removed"))
    text = _mutant(*edits).mutated(sources)[POLLING]
    expected = LEADER.replace("self.is_removed", "removed").replace(
        "return self.deadline", "a = 1\n            return a"
    )
    assert _normal(text) == _normal(expected)


@pytest.mark.parametrize(
    "files",
    [
        {"storage/kvorum/storage/leader.py": LEADER},
        {POLLING: f"if True:{LEADER}"},
        {POLLING: LEADER, DRIVER: "def tick():\n    return None\n"},
    ],
    ids=["another file", "another block", "another tick"],
)
def test_a_function_is_found_wherever_it_is(tmp_path: Path, files: dict[str, str]) -> None:
    place, _ = _edit("return None", "return 0").found_in(_sources(tmp_path, files))
    assert place.file == next(iter(files))


def test_a_room_decides_between_functions_of_one_name(tmp_path: Path) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER, DRIVER: LEADER})
    with pytest.raises(EditError, match=r"2 times.*\(node\.raft\.driver\).*\(raft\.poll\)"):
        _edit("return None").found_in(sources)
    for room, file in (("raft", POLLING), ("node", DRIVER), ("node.raft", DRIVER)):
        assert _edit("return None", room=room).found_in(sources)[0].file == file
    with pytest.raises(EditError, match=r"no function or class of that name; .*raft\.poll"):
        _edit("return None", room="storage").found_in(sources)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (_edit("return 7"), "is not in Leader.tick"),
        (_edit("self.deadline", "0"), "is there 3 times"),
        (_edit("return None", within="tick"), "stands in Leader.tick"),
        (_edit("self.is_removed", ""), "is an expression"),
        (_edit("return return"), "is not Python"),
        (_edit(" "), "is nothing"),
    ],
    ids=["not there", "several times", "renamed", "no expression", "not Python", "nothing"],
)
def test_an_edit_that_does_not_apply_says_why(tmp_path: Path, edit: Edit, problem: str) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER})
    with pytest.raises(EditError, match=problem):
        edit.found_in(sources)


def test_a_digest_is_of_the_code_that_changes_not_of_its_form_or_place() -> None:
    digest = _mutant(_edit("a.b(1, 2)", "pass")).digest
    assert _mutant(_edit("  a.b(  # so\n 1, (2))", "pass\n", room="raft")).digest == digest
    for other in (
        _edit("a.b(1, 3)", "pass"),
        _edit("a.b(1, 2)"),
        _edit("a.b(1, 2)", "pass", within="Leader.poll"),
    ):
        assert _mutant(other).digest != digest


RECORDED = _edit("return None", "return self.send(self.deadline)")


@pytest.mark.parametrize(
    ("old", "new", "names", "is_kept"),
    [
        ("return None", "return self.send(self.deadline)", {"post": "send"}, True),
        ("return None", "return self.post(self.deadline)", {"send": "post"}, True),
        ("return None", "return self.post(self.deadline)", {"send": "put"}, False),
        ("return None", "return self.post(self.deadline + 1)", {"send": "post"}, False),
        # Two names became one.
        ("return None", "return self.at(self.at)", {"send": "at", "deadline": "at"}, False),
        # An edit that does not apply.
        ("return 7", "return self.post(self.deadline)", {"send": "post"}, False),
    ],
)
def test_a_result_is_kept_where_names_are_all_that_differs(
    tmp_path: Path, old: str, new: str, names: dict[str, str], is_kept: bool
) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER})
    ledger, mutant = {"a bug": _entry(_mutant(RECORDED))}, _mutant(_edit(old, new))
    entries, outdated = renamed_entries(ledger, [mutant], names=names, sources=sources)
    assert outdated == ([] if is_kept else ["a bug"])
    assert (entries["a bug"].digest == mutant.digest) is is_kept
    assert entries["a bug"].caught_by == "a::test"


def test_a_name_that_was_replaced_in_part_is_measured_again(tmp_path: Path) -> None:
    sources = _sources(tmp_path, {POLLING: LEADER})
    ledger = {"a bug": _entry(_mutant(_edit("return None", "return self.send(self.send)")))}
    in_part = _mutant(_edit("return None", "return self.send(self.post)"))
    names = {"send": "post"}
    assert renamed_entries(ledger, [in_part], names=names, sources=sources)[1] == ["a bug"]
