"""Cores whose every verb is seen: what it was given, what it made of its state, and its effects."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from tests.model.exploration.state import NOBODY, NODES_MAX, Entry, Log, Node, bit, voters_of

from kvorum.raft import RaftCore
from kvorum.raft.effects import Effects
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.leader_contact import LeaderContact
from kvorum.raft.messages import Request, RequestFailed, Response
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Candidate, Follower, Prospective
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class Started(NamedTuple):
    """A process began on what its directory holds."""


class Ticked(NamedTuple):
    """A timer ran out."""


class Asked(NamedTuple):
    request: Request
    token: int


class Heard(NamedTuple):
    """A response came in, or the failure of a request."""

    number: int
    response: Response | RequestFailed


class Proposed(NamedTuple):
    """So many records were proposed; none if it was another kraft.version."""

    record_count: int


class Synced(NamedTuple):
    end_offset: int


class Truncated(NamedTuple):
    """A truncation went further than it was asked to."""

    end_offset: int


class Installed(NamedTuple):
    """A fetched snapshot took the place of the log."""

    snapshot_id: OffsetAndEpoch


class StartMoved(NamedTuple):
    """The log's start moved, or there is one snapshot more or less."""


class Dismissed(NamedTuple):
    """A leader was asked to go, or a process to end."""


Event: TypeAlias = (
    Started
    | Ticked
    | Asked
    | Heard
    | Proposed
    | Synced
    | Truncated
    | Installed
    | StartMoved
    | Dismissed
)
Observer: TypeAlias = Callable[["ObservedCore", Event, Effects], None]


class ObservedCore(RaftCore):
    """A core that tells an observer of each verb, once that is done."""

    observer: Observer | None = None

    @property
    def own_key(self) -> ReplicaKey:
        """The node, and the directory it runs on."""
        return self._replica.own.key

    def _tell(self, event: Event, effects: Effects) -> Effects:
        if self.observer is not None:
            self.observer(self, event, effects)
        return effects

    def start(self, now: float, *, stored: ElectionRecord | None) -> Effects:
        return self._tell(Started(), super().start(now, stored=stored))

    def tick(self, now: float) -> Effects:
        return self._tell(Ticked(), super().tick(now))

    def receive(self, now: float, *, token: int, request: Request) -> Effects:
        return self._tell(Asked(request, token), super().receive(now, token=token, request=request))

    def receive_response(
        self, now: float, *, number: int, response: Response | RequestFailed
    ) -> Effects:
        effects = super().receive_response(now, number=number, response=response)
        return self._tell(Heard(number, response), effects)

    def propose(self, now: float, *, epoch: int, count: int) -> tuple[int, Effects]:
        offset, effects = super().propose(now, epoch=epoch, count=count)
        return offset, self._tell(Proposed(count), effects)

    def upgrade_kraft_version(
        self, now: float, *, epoch: int, kraft_version: int, validate_only: bool
    ) -> tuple[bool, Effects]:
        is_new, effects = super().upgrade_kraft_version(
            now, epoch=epoch, kraft_version=kraft_version, validate_only=validate_only
        )
        return is_new, self._tell(Proposed(0), effects)

    def log_durable(self, now: float, end_offset: int) -> Effects:
        return self._tell(Synced(end_offset), super().log_durable(now, end_offset))

    def log_truncated(self, now: float, end_offset: int) -> Effects:
        return self._tell(Truncated(end_offset), super().log_truncated(now, end_offset))

    def snapshot_installed(
        self,
        now: float,
        snapshot_id: OffsetAndEpoch,
        *,
        voters: VoterSet | None,
        kraft_version: int,
    ) -> Effects:
        effects = super().snapshot_installed(
            now, snapshot_id, voters=voters, kraft_version=kraft_version
        )
        return self._tell(Installed(snapshot_id), effects)

    def snapshot_refused(self, now: float, snapshot_id: OffsetAndEpoch) -> Effects:
        return self._tell(Ticked(), super().snapshot_refused(now, snapshot_id))

    def log_start_moved(self, start_offset: int, snapshots: Iterable[OffsetAndEpoch]) -> None:
        super().log_start_moved(start_offset, snapshots)
        self._tell(StartMoved(), Effects())

    def resign(self, now: float, *, epoch: int) -> Effects:
        return self._tell(Dismissed(), super().resign(now, epoch=epoch))

    def shutdown(self, now: float) -> Effects:
        return self._tell(Dismissed(), super().shutdown(now))


def number_of(node_id: int | None) -> int:
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
    """Return what a core shows of itself, with the log that it was found to have.

    A node's number is its id less one; which replica it is, follows from its directory. The model
    keeps logs whole; a core knows only what is left of its own, so the records before come from
    what was seen before, or from what is committed.
    """
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
