"""Numbers in the documents are those of the things that they count."""

import re
from collections import Counter

from tests.model.exploration.invariants import STATE_INVARIANTS, STEP_INVARIANTS
from tests.model.exploration.topics import LARGE, MISTAKES, QUICK
from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.mutant import Kind
from tests.model.simulation.broker_mistakes import MISTAKES as MISTAKES_OF_BROKERS
from tests.support.source_tree import ROOT

from kvorum.simulation.partitions import promises
from kvorum.simulation.properties import catalogue

MISTAKES_OF_THE_MODEL = re.compile(r"(\d+) mistakes in it, each with a counterexample")
TOPICS_OF_THE_MODEL = re.compile(r"exhausts (\d+) topics .*?in a test run, (\d+) larger", re.DOTALL)
INVARIANTS_OF_THE_MODEL = re.compile(r"checks (\d+) invariants")
PROPERTIES = re.compile(
    r"(\d+) of safety and (\d+) of liveness of the quorum in.*?(\d+) and (\d+) of brokers",
    re.DOTALL,
)
MISTAKES_OF_EACH_PROPERTY = re.compile(r"for each of their (\d+) properties a mistake is made")
MISTAKE = re.compile(r"^\| ([PL]\d+) \| (.+?) \| (.+?) \| (\d+) \|$", re.MULTILINE)
BUGS = re.compile(r"(\d+) bugs, .*?\((\d+) against safety, (\d+) against liveness\)")


def test_the_bugs_that_are_put_in_are_as_many_as_is_written() -> None:
    counts = Counter(mutant.kind for mutant in MUTANTS)
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    found = [tuple(map(int, match.groups())) for match in BUGS.finditer(text)]
    assert found == [(len(MUTANTS), counts[Kind.SAFETY], counts[Kind.LIVENESS])]


def test_the_model_is_as_large_as_is_written() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    assert MISTAKES_OF_THE_MODEL.findall(text) == [str(len(MISTAKES))]
    assert TOPICS_OF_THE_MODEL.findall(text) == [(str(len(QUICK)), str(len(LARGE)))]
    invariant_count = len(STATE_INVARIANTS) + len(STEP_INVARIANTS)
    assert INVARIANTS_OF_THE_MODEL.findall(text) == [str(invariant_count)]


def test_the_properties_are_as_many_as_is_written() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    lists = (catalogue.SAFETY, catalogue.LIVENESS, promises.SAFETY, promises.LIVENESS)
    assert PROPERTIES.findall(text) == [tuple(str(len(one)) for one in lists)]
    assert MISTAKES_OF_EACH_PROPERTY.findall(text) == [str(len(promises.ALL))]


def test_each_property_of_brokers_is_written_down_with_a_mistake_that_breaks_it() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    rows = MISTAKE.findall(text)
    assert [row[:2] for row in rows] == [(one.id, one.meaning) for one in promises.ALL]
    made = {(one.breaks.id, one.what, str(one.seed)) for one in MISTAKES_OF_BROKERS}
    assert {(number, what, seed) for number, _, what, seed in rows} <= made
