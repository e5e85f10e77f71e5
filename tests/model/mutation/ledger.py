"""The ledger: which test catches which bug, as it was measured."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.model.mutation.mutant import EditError, Mutant, Sources

LEDGER_FILE = Path(__file__).with_name("ledger.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The entry of one bug.

    `caught_by` is the test that fails with the bug and passes without, None where none was found.
    `says` is how it failed. `digest` identifies the edits that it was measured with. `worlds` is
    how many simulated worlds of brokers it took to show the bug; None where none did.
    """

    cause: str
    breaks: str
    kind: str
    digest: str
    caught_by: str | None
    says: str = ""
    seconds: float = 0.0
    worlds: int | None = None


def read_ledger() -> dict[str, Entry]:
    """Return the ledger by the ids of the bugs."""
    if not LEDGER_FILE.exists():
        return {}
    content: dict[str, dict[str, Any]] = json.loads(LEDGER_FILE.read_text(encoding="utf-8"))
    return {bug_id: Entry(**fields) for bug_id, fields in content.items()}


def write_ledger(entries: Mapping[str, Entry]) -> None:
    """Store the ledger, in order of the ids."""
    content = {bug_id: _fields(entries[bug_id]) for bug_id in sorted(entries)}
    LEDGER_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _fields(entry: Entry) -> dict[str, object]:
    fields = asdict(entry)
    if entry.worlds is None:
        del fields["worlds"]
    return fields


def renamed_entries(
    ledger: Mapping[str, Entry],
    mutants: Iterable[Mutant],
    *,
    names: Mapping[str, str],
    sources: Sources,
) -> tuple[dict[str, Entry], list[str]]:
    """Return the ledger after a renaming, and the ids of the bugs that have to be measured again.

    A result stays true where the edits apply and differ from those it was measured with in nothing
    but `names`, old to new. Entries of other bugs stay as they are, so their digests are wrong.
    """
    entries = dict(ledger)
    outdated: list[str] = []
    for mutant in mutants:
        entry = ledger.get(mutant.id)
        if entry is not None and _is_only_renamed(mutant, entry, names, sources):
            entries[mutant.id] = replace(entry, digest=mutant.digest)
        else:
            outdated.append(mutant.id)
    return entries, outdated


def _is_only_renamed(
    mutant: Mutant, entry: Entry, names: Mapping[str, str], sources: Sources
) -> bool:
    try:
        mutant.mutated(sources)
        if mutant.digest == entry.digest:
            return True
        before = mutant.renamed({new: old for old, new in names.items()})
        # Two names may have become one, or a name was not replaced everywhere: then the way back
        # and forth does not lead here again.
        return before.digest == entry.digest and before.renamed(names).digest == mutant.digest
    except EditError:
        return False
