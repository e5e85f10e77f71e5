"""The mutation ledger: every bug can be put in, is known to be caught, and a few are caught now.

``python -m tests.mutation`` puts all of them in, which takes a while, and writes the ledger.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mutation.catalog import MUTANTS
from tests.mutation.ledger import Entry, read_ledger
from tests.mutation.mutant import ROOT, Edit, EditError, Kind, Mutant
from tests.mutation.scratch import Scratch

BUGS_MIN = 60
CAUGHT_SHARE_MIN = 0.95
SAMPLE = ("logcabin#44", "hashicorp/raft#661", "KAFKA-15412", "KAFKA-13916")
LEDGER = read_ledger()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_bug_can_be_put_in(mutant: Mutant) -> None:
    texts = mutant.mutated()
    assert texts
    for name, text in texts.items():
        compile(text, name, "exec")
        assert text != (ROOT / name).read_text(encoding="utf-8")


def test_an_edit_wants_its_text_exactly_once() -> None:
    edit = Edit("a file", "this", "that")
    assert edit.applied_to("this or other") == "that or other"
    for text in ("nothing of it", "this, and this once more"):
        with pytest.raises(EditError):
            edit.applied_to(text)


def test_the_ledger_is_of_these_bugs() -> None:
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS) >= BUGS_MIN
    assert {mutant.id: mutant.digest for mutant in MUTANTS} == {
        bug_id: entry.digest for bug_id, entry in LEDGER.items()
    }, "run python -m tests.mutation --new --search"


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


@pytest.mark.parametrize("entry", LEDGER.values(), ids=list(LEDGER))
def test_what_catches_a_bug_is_there(entry: Entry) -> None:
    if entry.caught_by is not None:
        file, test = entry.caught_by.split("::", 1)
        assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


def test_a_sample_of_bugs_is_caught_now(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    for mutant in MUTANTS:
        if mutant.id in SAMPLE:
            caught_by = LEDGER[mutant.id].caught_by
            assert caught_by is not None
            with scratch.mutated(mutant):
                assert not scratch.run([caught_by]).has_passed
            assert scratch.run([caught_by]).has_passed
