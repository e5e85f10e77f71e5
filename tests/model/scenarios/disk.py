"""The disk of a node of a scenario, and the records that it writes and a core hears of."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.scenarios.trace_words import name_of

from kvorum.raft import (
    ElectionRecord,
    EpochStart,
    LogView,
    OffsetAndEpoch,
    VoterSet,
    VoterSetHistory,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

SNAPSHOT_SIZE = 2
"""A snapshot's bytes; each fetch gets one of them, so that a download takes two."""


class Entry(NamedTuple):
    """One record: the epoch it was written in, and what it says."""

    epoch: int
    text: str
    voters: VoterSet | None = None
    kraft_version: int | None = None


class Snapshot(NamedTuple):
    """The committed records below a snapshot's end, and the voters as of there."""

    entries: tuple[Entry, ...]
    voters: VoterSet | None = None
    kraft_version: int = 0


NO_SNAPSHOT = Snapshot(())


@dataclass
class Disk:
    """The stored data of a node, and the part that would survive a crash."""

    directory: int = 0
    start: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    durable_end: int = 0
    election: ElectionRecord | None = None
    snapshots: dict[OffsetAndEpoch, Snapshot] = field(
        default_factory=dict[OffsetAndEpoch, Snapshot]
    )

    @property
    def end(self) -> int:
        return self.start + len(self.entries)

    def read(self, offset: int) -> list[Entry]:
        return self.entries[offset - self.start :]

    def truncate(self, offset: int) -> None:
        del self.entries[offset - self.start :]
        self.durable_end = min(self.durable_end, self.end)

    def crash(self) -> None:
        del self.entries[self.durable_end - self.start :]

    def latest_snapshot(self) -> tuple[OffsetAndEpoch, Snapshot] | None:
        return max(self.snapshots.items(), key=lambda known: known[0].offset, default=None)

    def view(self) -> LogView:
        """Return the content of the log as a core gets it at its start."""
        epochs: list[EpochStart] = []
        for offset, entry in enumerate(self.entries, start=self.start):
            if not epochs or epochs[-1].epoch != entry.epoch:
                epochs.append(EpochStart(entry.epoch, offset))
        return LogView(
            start_offset=self.start,
            end_offset=self.end,
            durable_end_offset=self.end,
            epochs=epochs,
            snapshots=list(self.snapshots),
        )

    def history(self, static: VoterSet) -> VoterSetHistory:
        """Return the voters through snapshot and log; `static` where these say nothing."""
        history = VoterSetHistory(static=static)
        latest = self.latest_snapshot()
        if latest is not None and latest[1].voters is not None:
            snapshot_id, snapshot = latest
            history.start_from_snapshot(
                snapshot_id, voters=snapshot.voters, kraft_version=snapshot.kraft_version
            )
        for offset, entry in enumerate(self.entries, start=self.start):
            if entry.kraft_version is not None:
                history.add_kraft_version(offset, entry.kraft_version)
            if entry.voters is not None:
                history.add_voters(offset, entry.voters)
        return history


def epoch_start(effect: fx.AppendEpochStart) -> list[Entry]:
    entries = [Entry(effect.epoch, f"leader {effect.leader_id}")]
    if effect.voters is not None:
        entries += new_voters(effect.epoch, effect.voters, effect.kraft_version)
    return entries


def new_voters(epoch: int, voters: VoterSet, kraft_version: int | None) -> list[Entry]:
    """Return the records of a new voter set, and of a new kraft.version before it."""
    entry = Entry(epoch, f"voters {voter_names(voters)}", voters=voters)
    if kraft_version is None:
        return [entry]
    return [Entry(epoch, f"kraft.version {kraft_version}", kraft_version=kraft_version), entry]


def voter_names(voters: VoterSet) -> str:
    """Return voters as the scenario files write them."""
    return ", ".join(name_of(voter.key) for voter in voters.voters)


def fetched(response: msg.FetchResponse, records: tuple[Entry, ...]) -> msg.FetchResponse:
    """Return what the fetching core gets of a response with records."""
    return response._replace(
        read_from=None,
        bytes_max=0,
        batches=tuple(
            msg.BatchSummary(
                base_offset=offset,
                last_offset=offset,
                epoch=entry.epoch,
                voters=() if entry.voters is None else ((offset, entry.voters),),
                kraft_versions=(
                    () if entry.kraft_version is None else ((offset, entry.kraft_version),)
                ),
            )
            for offset, entry in enumerate(records, start=response.read_from or 0)
        ),
    )


def snapshot_part(response: msg.FetchSnapshotResponse) -> msg.FetchSnapshotResponse:
    """Return what the fetching core gets of one part of a snapshot."""
    return response._replace(size=SNAPSHOT_SIZE, part_size=1, bytes_max=0)
