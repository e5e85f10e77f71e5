"""The voter sets and kraft.version levels that a snapshot and the log after it hold.

The voter set and kraft.version are functions of a snapshot and a prefix of the log. A change counts
as soon as it is appended, committed or not. Because every result is computed from the log's own
contents, truncating the log also undoes the changes in the removed part.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kvorum.raft.voter_set import VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class _Change(NamedTuple):
    """A control record at an offset: a new voter set, or a new kraft.version."""

    offset: int
    voters: VoterSet | None = None
    kraft_version: int | None = None


@dataclass(slots=True)
class VoterSetHistory:
    """The voters of the log and the snapshot before it; `static` counts until these hold any."""

    static: VoterSet = field(default_factory=VoterSet)
    _changes: list[_Change] = field(default_factory=list[_Change])

    def start_from_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, voters: VoterSet | None, kraft_version: int
    ) -> None:
        """Forget everything and begin with the contents of a snapshot.

        The snapshot's records get the offset right before its end: -1 for the bootstrap snapshot.
        """
        self._changes = [_Change(snapshot_id.offset - 1, voters, kraft_version)]

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        """Note a KRAFT_VOTERS record at `offset`, behind all that were noted before."""
        self._add(_Change(offset, voters=voters))

    def add_kraft_version(self, offset: int, kraft_version: int) -> None:
        """Note a KRAFT_VERSION record at `offset`, behind all that were noted before."""
        self._add(_Change(offset, kraft_version=kraft_version))

    def truncate_to(self, end_offset: int) -> None:
        """Forget the changes at `end_offset` and behind."""
        self._changes = [change for change in self._changes if change.offset < end_offset]

    @property
    def voters(self) -> VoterSet:
        """The voters as of the log's end."""
        return self.voters_at(None)

    @property
    def previous_voters(self) -> VoterSet:
        """The voters before the latest record that changed them."""
        sets = [change.voters for change in self._changes if change.voters is not None]
        return sets[-2] if len(sets) > 1 else self.static

    @property
    def kraft_version(self) -> int:
        """The kraft.version as of the log's end."""
        return self.kraft_version_at(None)

    @property
    def voters_offset(self) -> int | None:
        """The offset of the record that holds the current voters; None for the static ones."""
        offsets = [change.offset for change in self._changes if change.voters is not None]
        return offsets[-1] if offsets else None

    def voters_at(self, end_offset: int | None) -> VoterSet:
        """Return the voters of the log up to `end_offset` (None: of the whole log)."""
        for change in reversed(self._changes):
            if change.voters is not None and (end_offset is None or change.offset < end_offset):
                return change.voters
        return self.static

    def recorded_voters_at(self, end_offset: int) -> VoterSet | None:
        """Return the voters that a snapshot ending at `end_offset` holds; None for static ones."""
        for change in reversed(self._changes):
            if change.voters is not None and change.offset < end_offset:
                return change.voters
        return None

    def kraft_version_at(self, end_offset: int | None) -> int:
        """Return the kraft.version of the log up to `end_offset` (None: of the whole log)."""
        for change in reversed(self._changes):
            version = change.kraft_version
            if version is not None and (end_offset is None or change.offset < end_offset):
                return version
        return 0

    def _add(self, change: _Change) -> None:
        if self._changes and change.offset < self._changes[-1].offset:
            raise ValueError(f"a change at {change.offset}, behind {self._changes[-1].offset}")
        self._changes.append(change)
