"""The records that a node of a scenario writes for its core, and those that a core hears of."""

from __future__ import annotations

from tests.model.scenarios.disk import Entry
from tests.model.scenarios.trace_words import name_of

from kvorum.raft import VoterSet
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

SNAPSHOT_SIZE = 2
"""A snapshot's bytes; each fetch gets one of them, so that a download takes two."""


def epoch_start(effect: fx.AppendEpochStart) -> list[Entry]:
    """Return the records a leader begins its epoch with."""
    entries = [Entry(effect.epoch, f"leader {effect.leader_id}")]
    if effect.voters is not None:
        entries += new_voters(effect.epoch, effect.voters, effect.kraft_version)
    return entries


def new_voters(epoch: int, voters: VoterSet, kraft_version: int | None) -> list[Entry]:
    """Return the records of a new voter set, and of a new kraft.version before it."""
    entry = Entry(epoch, f"voters {voter_names(voters)}", voters=voters)
    if kraft_version is None:
        return [entry]
    version = Entry(epoch, f"kraft.version {kraft_version}", kraft_version=kraft_version)
    return [version, entry]


def voter_names(voters: VoterSet) -> str:
    """Return voters as the scenario files write them."""
    return ", ".join(name_of(voter.key) for voter in voters.voters)


def fetched(response: msg.FetchResponse, records: tuple[Entry, ...]) -> msg.FetchResponse:
    """Return what the fetching core gets of a response with records."""
    start = response.read_from or 0
    return msg.FetchResponse(
        error=response.error,
        leader=response.leader,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
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
            for offset, entry in enumerate(records, start=start)
        ),
    )


def snapshot_part(response: msg.FetchSnapshotResponse) -> msg.FetchSnapshotResponse:
    """Return what the fetching core gets of one part of a snapshot."""
    return msg.FetchSnapshotResponse(
        error=response.error,
        leader=response.leader,
        snapshot_id=response.snapshot_id,
        position=response.position,
        size=SNAPSHOT_SIZE,
        part_size=1,
    )
