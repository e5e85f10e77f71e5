"""Each invariant's guard broken once: the exploration must notice it, and say what is broken.

The mutants are named in `mutants.py`.
"""

from __future__ import annotations

import pytest
from tests.model.properties.partitions.folding import differing_folds
from tests.model.properties.partitions.mutants import MUTANTS, Mutant
from tests.support.partitions.explore import explore


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_guard_is_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.break_it(monkeypatch)
    visit = differing_folds if mutant.is_of_folds else None
    broken = explore(mutant.space, states_max=1_000, visit=visit).broken
    assert broken is not None
    assert broken.claim == mutant.claim
