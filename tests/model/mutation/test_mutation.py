"""The mutation ledger: every bug can be put in, is known to be caught, and a few are caught now.

``python -m tests.model.mutation`` puts all of them in, which takes a while, and writes the ledger.
"""

import ast
import os
from pathlib import Path

import pytest
from tests.model.mutation.__main__ import SUITES
from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.ledger import read_ledger
from tests.model.mutation.mutant import Kind, Mutant
from tests.model.mutation.scratch import Scratch
from tests.model.mutation.sources import Sources
from tests.support.node_process import run_python
from tests.support.source_tree import ROOT, SOURCE_ROOTS

BUGS_MIN = 60
CAUGHT_SHARE_MIN = 0.95
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
def test_a_sample_of_bugs_is_caught_now(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    for mutant in MUTANTS:
        if mutant.id in SAMPLE:
            caught_by = LEDGER[mutant.id].caught_by
            assert caught_by is not None
            with scratch.mutated(mutant):
                assert not scratch.run([caught_by]).has_passed
            assert scratch.run([caught_by]).has_passed
