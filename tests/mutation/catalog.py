"""All bugs that are put in."""

from __future__ import annotations

from tests.mutation import (
    bugs_controller,
    bugs_elections,
    bugs_replication,
    bugs_storage,
    bugs_voters,
)
from tests.mutation.mutant import Mutant

_UNMEASURED: frozenset[str] = frozenset(
    {
        "KAFKA-13104",
        "KAFKA-14996",
        "KAFKA-15078",
        "KAFKA-19605",
        "answered before it is committed",
        "epochs kept when truncating",
    }
)
"""Bugs that nothing was run against so far."""

_ALL: tuple[Mutant, ...] = (
    *bugs_elections.MUTANTS,
    *bugs_replication.MUTANTS,
    *bugs_voters.MUTANTS,
    *bugs_storage.MUTANTS,
    *bugs_controller.MUTANTS,
)

MUTANTS: tuple[Mutant, ...] = tuple(mutant for mutant in _ALL if mutant.id not in _UNMEASURED)
