"""The state of the model's quorum: nodes, what is on its way between them, and its history.

Everything is a tuple, so that states can be compared and put into sets. Nodes are numbered from 0;
a set is a bit mask. A node's log is kept whole: `start` says how much of it is only left in a
snapshot, so that what a snapshot holds can still be looked at.

A replica is a node with one of its directories; where a disk was replaced, the node is another
replica. A replica's number is its node's as long as that has its first directory (`replica_of`).
Voters, votes and progress are of replicas, and so is who wrote a record; a leader is known by its
node, and a message goes to a node, as Kafka's do.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tests.model.exploration.design import Design

NOBODY = -1
NODES_MAX = 32
"""The step of the number of a node's replica with each directory."""

UNATTACHED = "unattached"
FOLLOWER = "follower"
PROSPECTIVE = "prospective"
CANDIDATE = "candidate"
LEADER = "leader"
RESIGNED = "resigned"

REACHED = -1
"""The target voters' end, written by the leader because the voters are the targets."""
CANCELLED = -2
"""The target voters' end, written because an operator asked for it."""


class Entry(NamedTuple):
    """One record: the epoch and the leader that wrote it, and what it says.

    `author` is a replica. `value` is 0 for the first record of an epoch, else the number of a
    write. `voters` is the mask of a voter record, 0 for any other. `targets` is the mask of the
    target voters where the record states them (KIP-642), `REACHED` or `CANCELLED` where it ends
    them.
    """

    epoch: int
    author: int
    value: int = 0
    voters: int = 0
    targets: int = 0


Log: TypeAlias = tuple[Entry, ...]


class Node(NamedTuple):
    """One replica. Role, epoch, leader and vote are durable as Kafka's quorum-state is.

    `watermark` is 0 while unknown; `promised` is a leader's watermark that is not durable here yet.
    `has_heard` is whether a fetch of this epoch was answered by the leader. `tally` holds who said
    yes, to a prospective or a candidate. `progress` is, of a leader, how far every node is, a row
    for each directory that they have fetched with. `directory` counts the disks before this one.
    """

    role: str = UNATTACHED
    epoch: int = 0
    leader: int = NOBODY
    voted: int = NOBODY
    log: Log = ()
    start: int = 0
    durable: int = 0
    watermark: int = 0
    promised: int = 0
    has_heard: bool = False
    tally: int = 0
    progress: tuple[tuple[int, ...], ...] = ()
    download: int = 0
    directory: int = 0

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def last_epoch(self) -> int:
        return self.log[-1].epoch if self.log else 0


class Request(NamedTuple):
    """A request: `kind` is pre-vote, vote, begin, end, fetch or snapshot.

    `sender` is a replica. So is `receiver` where a voter is meant; the node gets the request
    whatever its directory. `offset` and `last_epoch` are where the sender's log ends, or the
    snapshot it asks for. The reply is not awaited any more once the sender has moved to another
    role or epoch, or crashed.
    """

    kind: str
    sender: int
    receiver: int
    epoch: int
    offset: int = 0
    last_epoch: int = 0
    is_awaited: bool = True


class Reply(NamedTuple):
    """The reply to a request: what the replier knows of epoch and leader, and what was asked for.

    `verdict` is error, granted, refused, records, diverging, snapshot or done; `offset` and
    `last_epoch` are where the asker's log diverges, or the snapshot that it should fetch.
    """

    kind: str
    sender: int
    receiver: int
    request: Request
    epoch: int
    leader: int
    verdict: str
    offset: int = 0
    last_epoch: int = 0
    entries: Log = ()
    watermark: int = 0


Message: TypeAlias = Request | Reply


class History(NamedTuple):
    """The history that no node can know, for the invariants to look at.

    `leaders` and `votes` are masks by epoch (and voter; of a node in its latest directory).
    `committed` is the longest committed log, and `counted_by` the voters that its last part was
    counted over.
    """

    leaders: tuple[int, ...]
    votes: tuple[tuple[int, ...], ...]
    committed: Log = ()
    counted_by: int = 0


class Spent(NamedTuple):
    """The counts of events by kind; the bounds limit them."""

    writes: int = 0
    crashes: int = 0
    changes: int = 0
    snapshots: int = 0
    resignations: int = 0
    deaths: int = 0
    replacements: int = 0
    target_changes: int = 0


class State(NamedTuple):
    """The whole quorum. `first_voters` are those of the configuration, `dead` those gone."""

    nodes: tuple[Node, ...]
    network: tuple[Message, ...]
    history: History
    spent: Spent
    first_voters: int
    dead: int = 0


def replica_of(own: int, node: Node) -> int:
    """Return the number of the replica that a node is with its directory."""
    return own + NODES_MAX * node.directory


def node_of(replica: int) -> int:
    return replica % NODES_MAX


def bit(replica: int) -> int:
    """Return the mask of one replica, or of one node."""
    return 1 << replica


def members(mask: int) -> list[int]:
    return [one for one in range(mask.bit_length()) if mask >> one & 1]


def is_majority(mask: int, voters: int) -> bool:
    """Tell whether `mask` holds more than half of the voters."""
    return (mask & voters).bit_count() > voters.bit_count() // 2


def voters_of(log: Sequence[Entry], first_voters: int) -> int:
    """Return the voters that a log says: its last voter record's, committed or not."""
    for entry in reversed(log):
        if entry.voters:
            return entry.voters
    return first_voters


def targets_of(log: Sequence[Entry]) -> int:
    """Return the target voters that a log says, 0 while no others are wanted."""
    return max(next((entry.targets for entry in reversed(log) if entry.targets), 0), 0)


def counts_as(design: Design, own: int, node: Node) -> int:
    """Return the voter, as a mask, whose vote a node has for itself: the replica that it is."""
    if design.stands_by_id:
        return sum(bit(own + NODES_MAX * directory) for directory in range(node.directory + 1))
    return bit(replica_of(own, node))


def may_stand(design: Design, own: int, node: Node, first_voters: int) -> bool:
    """Tell whether a node may stand for election.

    Besides the voters that is who the latest record removes, while it does not know that record to
    be committed: it may be the only one that has it (section 4.2.2 of Ongaro's thesis). Its own
    vote does not count then.
    """
    replica = counts_as(design, own, node)
    if voters_of(node.log, first_voters) & replica:
        return True
    changes = [offset for offset, entry in enumerate(node.log) if entry.voters]
    if not changes or changes[-1] < max(node.watermark, node.start):
        return False
    return bool(voters_of(node.log[: changes[-1]], first_voters) & replica)


def with_node(state: State, index: int, node: Node) -> State:
    nodes = state.nodes
    return state._replace(nodes=(*nodes[:index], node, *nodes[index + 1 :]))
