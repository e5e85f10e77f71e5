"""A mistake in the code of a node, and the property that it breaks in a world of brokers."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.in_process import put_in
from tests.model.mutation.mutant import Edit

from kvorum.simulation.properties.catalogue import Property

Make = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in words, the property that it breaks, and the number of a world that shows it.

    `seed` is None where no such world is known: they are one of hundreds, and change with the code.
    """

    what: str
    breaks: Property
    seed: int | None
    make: Make


def edited(*edits: Edit) -> Make:
    """Return a mistake that is made by edits of the ledger's kind."""
    return lambda patch: put_in(patch, edits)


def of_ledger(bug_id: str) -> Make:
    """Return a mistake that is a bug of the ledger."""
    (bug,) = [one for one in MUTANTS if one.id == bug_id]
    return edited(*bug.edits)


def in_place_of(owner: object, name: str, defect: object) -> Make:
    """Return a mistake that is a function in place of another."""
    return lambda patch: patch.setattr(owner, name, defect)
