"""What a core is in the model's words.

A node's number is its id less one. The model keeps logs whole; a core knows only what is left of
its own, so the records before come from what was seen before, or from what is committed.
"""

from __future__ import annotations

from tests.model.state import NOBODY, Entry, Log, Node, bit, voters_of

from kvorum.raft import RaftCore
from kvorum.raft.roles import Candidate, Follower, LeaderContact, Prospective
from kvorum.raft.voter_set import VoterSet


def mask_of(voters: VoterSet) -> int:
    """Return voters as a mask."""
    return sum(bit(voter_id - 1) for voter_id in voters.ids)


def number_of(node_id: int | None) -> int:
    """Return a node's number in the model."""
    return NOBODY if node_id is None else node_id - 1


class Records:
    """Every record that was ever seen, by epoch and offset: one object for each."""

    def __init__(self) -> None:
        self._entries: dict[tuple[int, int], Entry] = {}
        self.leaders: dict[int, int] = {}

    def entry(self, epoch: int, offset: int, *, voters: int) -> Entry:
        """Return the record of an epoch at an offset."""
        key = (epoch, offset)
        known = self._entries.get(key)
        if known is None or known.voters != voters:
            author = self.leaders.get(epoch, NOBODY)
            known = self._entries[key] = Entry(epoch, author, offset, voters)
        return known


def log_of(
    core: RaftCore, *, known: Log, committed: Log, records: Records, first_voters: int
) -> Log:
    """Return a core's log, given the one that its node was known to have before.

    A voter record in which the voters stay who they are counts as any other record.
    """
    view, history = core.log, core.history
    starts = [*view.epochs]
    # A segment may reach further back than the epochs do that are still known.
    first_known = starts[0].start_offset if starts else view.end_offset
    before = known if len(known) >= first_known else committed
    log = list(before[: max(first_known, view.start_offset)])
    for index, (epoch, first) in enumerate(starts):
        end = starts[index + 1].start_offset if index + 1 < len(starts) else view.end_offset
        for offset in range(max(first, len(log)), end):
            if offset < len(known) and known[offset].epoch == epoch:
                log.append(known[offset])
                continue
            here, earlier = history.voters_at(offset + 1), history.voters_at(offset)
            voters = 0 if here is earlier else mask_of(here)
            is_change = voters not in {0, voters_of(log, first_voters)}
            log.append(records.entry(epoch, offset, voters=voters if is_change else 0))
    return tuple(log)


def node_of(core: RaftCore, log: Log) -> Node:
    """Return what a core shows of itself, with the log that it was found to have."""
    role, view = core.role, core.log
    tally = role.tally.granted if isinstance(role, Prospective | Candidate) else ()
    has_heard, download = False, None
    if isinstance(role, Follower):
        has_heard, download = role.contact is LeaderContact.ALIVE, role.download
    return Node(
        role=role.name.value,
        epoch=role.epoch,
        leader=number_of(role.leader_id),
        voted=number_of(None if role.voted is None else role.voted.id),
        log=log,
        start=view.start_offset,
        durable=view.durable_end_offset,
        watermark=core.high_watermark or 0,
        has_heard=has_heard,
        tally=sum(bit(key.id - 1) for key in tally),
        download=0 if download is None else download.snapshot_id.offset,
    )
