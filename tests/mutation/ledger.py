"""The ledger: which test catches which bug, as it was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

LEDGER_FILE = Path(__file__).with_name("ledger.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known of one bug.

    `caught_by` is the test that fails with the bug and passes without, None where none was found.
    `says` is how it failed. `digest` tells which edits that was measured with.
    """

    cause: str
    breaks: str
    kind: str
    digest: str
    caught_by: str | None
    says: str = ""
    seconds: float = 0.0


def read_ledger() -> dict[str, Entry]:
    """Return the ledger by the ids of the bugs."""
    if not LEDGER_FILE.exists():
        return {}
    content: dict[str, dict[str, object]] = json.loads(LEDGER_FILE.read_text(encoding="utf-8"))
    return {bug_id: _entry(fields) for bug_id, fields in content.items()}


def _entry(fields: Mapping[str, object]) -> Entry:
    caught_by, seconds = fields["caught_by"], fields["seconds"]
    return Entry(
        cause=str(fields["cause"]),
        breaks=str(fields["breaks"]),
        kind=str(fields["kind"]),
        digest=str(fields["digest"]),
        caught_by=None if caught_by is None else str(caught_by),
        says=str(fields["says"]),
        seconds=float(str(seconds)),
    )


def write_ledger(entries: Mapping[str, Entry]) -> None:
    """Store the ledger, in order of the ids."""
    content = {bug_id: asdict(entries[bug_id]) for bug_id in sorted(entries)}
    LEDGER_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
