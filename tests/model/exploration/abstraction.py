"""A core in the model's words.

A node's number is its id less one; which replica it is, follows from its directory. The model keeps
logs whole; a core knows only what is left of its own, so the records before come from what was seen
before, or from what is committed.
"""

from collections.abc import Iterable

from tests.model.exploration.state import NOBODY, NODES_MAX, Entry, Log, Node, bit, voters_of

from kvorum.raft import RaftCore
from kvorum.raft.leader_contact import LeaderContact
from kvorum.raft.roles import Candidate, Follower, Prospective
from kvorum.raft.voter_set import ReplicaKey, VoterSet


def number_of(node_id: int | None) -> int:
    """Return a node's number in the model."""
    return NOBODY if node_id is None else node_id - 1


class Directories:
    """The directories of every node, in the order in which they were first seen.

    A key without a directory id stands for the first of them.
    """

    def __init__(self) -> None:
        self._of_node: dict[int, list[bytes]] = {}
        self.known_by_id: set[int] = set()
        self.ever_voters = 0

    def replica(self, key: ReplicaKey | None) -> int:
        """Return the number of a replica."""
        if key is None:
            return NOBODY
        return number_of(key.id) + NODES_MAX * self.index(key)

    def index(self, key: ReplicaKey) -> int:
        """Return how many directories of a node were seen before this one."""
        if key.directory_id is None:
            return 0
        known = self._of_node.setdefault(key.id, [])
        if key.directory_id not in known:
            known.append(key.directory_id)
        return known.index(key.directory_id)

    def mask(self, keys: Iterable[ReplicaKey]) -> int:
        """Return replicas as a mask."""
        return sum(bit(self.replica(key)) for key in keys)

    def voters(self, voters: VoterSet) -> int:
        """Return voters as a mask, and note them, and who of them is known by its id alone."""
        keys = [voter.key for voter in voters.voters]
        self.known_by_id |= {key.id for key in keys if key.directory_id is None}
        mask = self.mask(keys)
        self.ever_voters |= mask
        return mask

    def replicas(self) -> list[int]:
        """Return every replica whose directory was seen."""
        return [
            number_of(node_id) + NODES_MAX * index
            for node_id, known in self._of_node.items()
            for index in range(len(known))
        ]


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
    core: RaftCore,
    *,
    known: Log,
    committed: Log,
    records: Records,
    directories: Directories,
    first_voters: int,
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
            voters = 0 if here is earlier else directories.voters(here)
            is_change = voters not in {0, voters_of(log, first_voters)}
            log.append(records.entry(epoch, offset, voters=voters if is_change else 0))
    return tuple(log)


def node_of(core: RaftCore, log: Log, *, own_key: ReplicaKey, directories: Directories) -> Node:
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
        voted=directories.replica(role.voted),
        log=log,
        start=view.start_offset,
        durable=view.durable_end_offset,
        watermark=core.high_watermark or 0,
        has_heard=has_heard,
        tally=directories.mask(tally),
        download=0 if download is None else download.snapshot_id.offset,
        directory=directories.index(own_key),
    )
