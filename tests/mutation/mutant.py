"""One bug from the history of a quorum, as a small change that puts it into this project."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Kind(Enum):
    """What a bug endangers: what was promised, that it goes on, or that it is Kafka."""

    SAFETY = "safety"
    LIVENESS = "liveness"
    CONFORMITY = "conformity"


class EditError(Exception):
    """The text that an edit replaces is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that is in a file exactly once, and what takes its place."""

    file: str
    old: str
    new: str

    def applied_to(self, text: str) -> str:
        """Return a file's text with the edit; raises EditError."""
        count = text.count(self.old)
        if count != 1:
            raise EditError(f"{self.file}: {count} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug: where it happened, what went wrong, which property that breaks, and its edits."""

    id: str
    cause: str
    breaks: str
    kind: Kind
    edits: tuple[Edit, ...]

    @property
    def digest(self) -> str:
        """What tells whether a result in the ledger is about these very edits."""
        said = "\0".join(f"{edit.file}\0{edit.old}\0{edit.new}" for edit in self.edits)
        return sha256(said.encode()).hexdigest()[:12]

    def mutated(self, root: Path = ROOT) -> dict[str, str]:
        """Return the new text of every file that is changed; raises EditError."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            before = texts.get(edit.file)
            if before is None:
                before = (root / edit.file).read_text(encoding="utf-8")
            texts[edit.file] = edit.applied_to(before)
        return texts
