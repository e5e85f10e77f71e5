"""Numbers in the documents are those of the things that they count."""

from __future__ import annotations

import re
from collections import Counter

from tests.meta.source_tree import ROOT
from tests.mutation.catalog import MUTANTS
from tests.mutation.mutant import Kind

BUGS = re.compile(r"(\d+) bugs, .*?\((\d+) against safety, (\d+) against liveness\)")


def test_the_bugs_that_are_put_in_are_as_many_as_is_written() -> None:
    counts = Counter(mutant.kind for mutant in MUTANTS)
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    found = [tuple(map(int, match.groups())) for match in BUGS.finditer(text)]
    assert found == [(len(MUTANTS), counts[Kind.SAFETY], counts[Kind.LIVENESS])]
