"""One bug from the history of a quorum, as a small change that puts it into this project."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from hashlib import sha256

from tests.model.mutation.sources import Place, Sources
from tests.model.mutation.syntax import Item, Match, matches, parsed, replaced, shape


class Kind(Enum):
    """The promise that a bug endangers: safety, progress, or that it is Kafka."""

    SAFETY = "safety"
    LIVENESS = "liveness"
    CONFORMITY = "conformity"


class EditError(Exception):
    """The text that an edit replaces is not there exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A piece of a function, method or class, and what takes its place.

    `within` is the qualified name of the function, wherever it is (`initial_role`, `Leader.tick`).
    Where the same stands in several functions of that name, `room` is the package of the wanted
    one below `kvorum` (`raft`, `node.raft`). `old` is a statement, several in a row, an `except`
    clause or an expression; `new` is of the same sort; without it the statements are deleted.
    Both are compared and written as syntax trees, so their formatting is free.
    """

    within: str
    old: str
    new: str = ""
    room: str = ""

    def found_in(self, sources: Sources) -> tuple[Place, Match]:
        """Return where the old piece is; raises EditError."""
        old = self._parsed(self.old)
        if not old:
            raise self._error("is nothing")
        named = [place for place in sources.named(self.within) if place.is_in(self.room)]
        if not named:
            raise self._error(f"has no function or class of that name{self._elsewhere(sources)}")
        found = [(place, match) for place in named for match in matches(place.node, old)]
        if not found:
            searched = ", ".join(map(str, named))
            raise self._error(f"is not in {searched}{self._elsewhere(sources)}")
        if len(found) > 1:
            several = ", ".join(f"{place} line {match.start[0]}" for place, match in found)
            raise self._error(f"is there {len(found)} times, not once: {several}")
        place, match = found[0]
        if isinstance(match.piece, ast.expr) and not self._is_expression(self.new):
            raise self._error("is an expression, but what takes its place is none")
        return place, match

    def replacement(self) -> Sequence[Item]:
        """Return what takes the old piece's place; raises EditError."""
        return self._parsed(self.new)

    @property
    def identity(self) -> str:
        """The identity of this edit, without formatting and place."""
        old, new = self._parsed(self.old), self._parsed(self.new)
        return f"{self.within}\0{shape(old)}\0{shape(new)}"

    def renamed(self, names: Mapping[str, str]) -> Edit:
        """Return the edit with names replaced wherever they stand as whole words."""
        if not names:
            return self
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")

        def with_names(text: str) -> str:
            return words.sub(lambda found: names[found[0]], text)

        return replace(
            self, within=with_names(self.within), old=with_names(self.old), new=with_names(self.new)
        )

    def _is_expression(self, source: str) -> bool:
        statements = self._parsed(source)
        return len(statements) == 1 and isinstance(statements[0], ast.Expr)

    def _parsed(self, source: str) -> Sequence[Item]:
        try:
            return parsed(source)
        except SyntaxError as error:
            raise self._error(f"is not Python, or what takes its place is not: {error}") from error

    def _elsewhere(self, sources: Sources) -> str:
        candidates = ", ".join(map(str, sources.holding(self._parsed(self.old))))
        return f"; the same stands in {candidates}" if candidates else ""

    def _error(self, problem: str) -> EditError:
        room = f" in {self.room}" if self.room else ""
        return EditError(f"{self.within}{room}: {self.old.strip()!r} {problem}")


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
        """The digest that decides whether a result in the ledger is about these very edits."""
        identities = "\0".join(edit.identity for edit in self.edits)
        return sha256(identities.encode()).hexdigest()[:12]

    def renamed(self, names: Mapping[str, str]) -> Mutant:
        """Return the bug with names replaced in its edits."""
        return replace(self, edits=tuple(edit.renamed(names) for edit in self.edits))

    def places(self, sources: Sources) -> tuple[Place, ...]:
        """Return the functions and classes that the edits are in; raises EditError."""
        return tuple(edit.found_in(sources)[0] for edit in self.edits)

    def mutated(self, sources: Sources) -> dict[str, str]:
        """Return the new text of every file that is changed; raises EditError."""
        changes: dict[str, list[tuple[Match, Sequence[Item]]]] = {}
        for edit in self.edits:
            place, match = edit.found_in(sources)
            changes.setdefault(place.file, []).append((match, edit.replacement()))
        return {file: replaced(sources.texts[file], made) for file, made in changes.items()}


def _bug(
    kind: Kind,
    *,
    id: str,  # noqa: A002 - the name of the field
    cause: str,
    breaks: str,
    within: str,
    old: str,
    new: str = "",
    room: str = "",
) -> Mutant:
    """Return a bug that a single edit puts in, as most are."""
    edit = Edit(within=within, old=old, new=new, room=room)
    return Mutant(id=id, cause=cause, breaks=breaks, kind=kind, edits=(edit,))


safety_bug = partial(_bug, Kind.SAFETY)
liveness_bug = partial(_bug, Kind.LIVENESS)
conformity_bug = partial(_bug, Kind.CONFORMITY)
