"""A quorum in one thread: real cores, and disks, a network and a clock that obey commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from kvorum.raft import (
    Destination,
    ElectionRecord,
    Endpoint,
    EpochStart,
    Identity,
    LogView,
    NotLeadingError,
    OffsetAndEpoch,
    RaftConfig,
    RaftCore,
    ReplicaKey,
    Voter,
    VoterHistory,
    VoterSet,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

LISTENER = "CONTROLLER"
SNAPSHOT_SIZE = 2
"""A snapshot's bytes; each fetch gets one of them, so that a download takes two."""


class Entry(NamedTuple):
    """One record: the epoch it was written in, and what it says."""

    epoch: int
    text: str


@dataclass
class Disk:
    """What a node has stored, and how much of that would survive a crash."""

    start: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    durable_end: int = 0
    election: ElectionRecord | None = None
    snapshots: dict[OffsetAndEpoch, list[Entry]] = field(
        default_factory=dict[OffsetAndEpoch, list[Entry]]
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
        """Lose what was not made durable."""
        del self.entries[self.durable_end - self.start :]

    def view(self) -> LogView:
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


class Message(NamedTuple):
    """Something on its way: a request, or, under a number, the response to one."""

    sender: int
    receiver: int
    number: int
    body: msg.Request | msg.Response
    records: tuple[Entry, ...] = ()


@dataclass
class Node:
    """One replica: its core while it runs, and its disk."""

    id: int
    can_vote: bool
    disk: Disk = field(default_factory=Disk)
    core: RaftCore | None = None
    flushes: bool = True
    committed: list[Entry] = field(default_factory=list[Entry])
    tokens: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    results: dict[int, Message] = field(default_factory=dict[int, Message])
    proposals: deque[list[str]] = field(default_factory=deque[list[str]])
    download: int = 0
    download_source: list[Entry] = field(default_factory=list[Entry])


class InvariantBrokenError(AssertionError):
    """The cluster did what no run of it may do."""


class Simulation:
    """All nodes, what is between them, and the time in milliseconds."""

    def __init__(self, *, seed: int = 1, say: Callable[[str], None] = lambda _: None) -> None:
        self.now = 0.0
        self.nodes: dict[int, Node] = {}
        self.in_flight: list[Message] = []
        self.cut: set[int] = set()
        self.committed: list[Entry] = []
        self.leaders: dict[int, int] = {}
        self._random = Random(seed)
        self._say = say
        self._voter_ids: list[int] = []
        self._next_token = 1

    def bring_up(self, voter_ids: Iterable[int]) -> None:
        """Make voters with empty disks and start them."""
        self._voter_ids = list(voter_ids)
        for voter_id in self._voter_ids:
            self.nodes[voter_id] = Node(voter_id, can_vote=True)
        for voter_id in self._voter_ids:
            self.start(voter_id)

    def add_observer(self, node_id: int) -> None:
        """Make an observer with an empty disk and start it."""
        self.nodes[node_id] = Node(node_id, can_vote=False)
        self.start(node_id)

    def start(self, node_id: int) -> None:
        """Start a node on what its disk holds."""
        node = self.nodes[node_id]
        node.core = RaftCore(
            self._identity(node),
            config=RaftConfig(),
            log=node.disk.view(),
            history=VoterHistory(static=self._voters()),
            random=Random(self._random.random()),
        )
        node.committed = list(self._snapshot_prefix(node))
        self._say(f"{node_id} starts")
        self._do(node, node.core.start(self.now, stored=node.disk.election))

    def _snapshot_prefix(self, node: Node) -> list[Entry]:
        latest = max(node.disk.snapshots, key=lambda known: known.offset, default=None)
        return [] if latest is None else node.disk.snapshots[latest]

    def _voters(self) -> VoterSet:
        return VoterSet.of(
            Voter(ReplicaKey(i), (Endpoint(LISTENER, f"host{i}", 9093),)) for i in self._voter_ids
        )

    def _identity(self, node: Node) -> Identity:
        return Identity(
            key=ReplicaKey(node.id, bytes([node.id]) * 16),
            endpoints=(Endpoint(LISTENER, f"host{node.id}", 9093),) if node.can_vote else (),
            listener_name=LISTENER,
            can_vote=node.can_vote,
            bootstrap=tuple(
                Destination(i, f"host{i}", 9093) for i in self._voter_ids if i != node.id
            ),
        )

    def crash(self, node_id: int) -> None:
        """Stop a node at once; what it had not made durable is gone."""
        node = self.nodes[node_id]
        node.core = None
        node.disk.crash()
        node.tokens.clear()
        node.results.clear()
        node.proposals.clear()
        self.in_flight = [one for one in self.in_flight if node_id not in one[:2]]
        self._say(f"{node_id} crashes, its log ends at {node.disk.end}")

    def propose(self, node_id: int, texts: list[str]) -> bool:
        """Propose records to a node; tell whether it took them."""
        node = self.nodes[node_id]
        if node.core is None:
            return False
        node.proposals.append(texts)
        try:
            epoch = node.core.role.epoch
            offset, effects = node.core.propose(self.now, epoch=epoch, count=len(texts))
        except NotLeadingError:
            node.proposals.pop()
            self._say(f"{node_id} does not lead")
            return False
        self._say(f"{node_id} takes {len(texts)} records at {offset}")
        self._do(node, effects)
        return True

    def flush(self, node_id: int) -> None:
        """Make a node's log durable."""
        node = self.nodes[node_id]
        if node.core is not None and node.disk.durable_end < node.disk.end:
            node.disk.durable_end = node.disk.end
            self._do(node, node.core.log_durable(self.now, node.disk.end))

    def make_snapshot(self, node_id: int) -> None:
        """Let a node store a snapshot of what is committed, and drop its log up to there."""
        node = self.nodes[node_id]
        if node.core is None or not node.committed:
            return
        snapshot_id = OffsetAndEpoch(len(node.committed), node.committed[-1].epoch)
        node.disk.snapshots = {snapshot_id: list(node.committed)}
        node.core.snapshot_created(snapshot_id)
        del node.disk.entries[: snapshot_id.offset - node.disk.start]
        node.disk.start = snapshot_id.offset
        node.core.log_start_moved(snapshot_id.offset, [snapshot_id])
        self._say(f"{node_id} has a snapshot up to {snapshot_id.offset}")

    def resign(self, node_id: int) -> None:
        """Ask a leader to give up its epoch."""
        node = self.nodes[node_id]
        if node.core is not None:
            self._do(node, node.core.resign(self.now, epoch=node.core.role.epoch))

    def shut_down(self, node_id: int) -> None:
        """Ask a node to hand over what it has, so that it can be closed."""
        node = self.nodes[node_id]
        if node.core is not None:
            self._do(node, node.core.shutdown(self.now))

    def advance(self, duration_ms: float) -> None:
        """Let time pass; whatever becomes due on the way is done when it is."""
        until = self.now + duration_ms
        while (due := self._next_due()) is not None and due[0] <= until:
            self.now = max(self.now, due[0])
            node = due[1]
            assert node.core is not None
            self._do(node, node.core.tick(self.now))
        self.now = until

    def _next_due(self) -> tuple[float, Node] | None:
        running = [
            (node.core.next_deadline, node) for node in self.nodes.values() if node.core is not None
        ]
        return min(running, key=lambda due: (due[0], due[1].id), default=None)

    def deliver(self, index: int = 0) -> None:
        """Hand over one message, or let it fail where nobody is there to take it."""
        message = self.in_flight.pop(index)
        receiver = self.nodes[message.receiver]
        is_lost = receiver.core is None or {message.sender, message.receiver} & self.cut
        if isinstance(message.body, msg.Request):
            if is_lost:
                self._fail(message)
            else:
                self._receive(receiver, message)
        elif not is_lost:
            self._respond(receiver, message)

    def drop(self, index: int = 0) -> None:
        """Lose one message without a word."""
        self.in_flight.pop(index)

    def settle(self, rounds: int = 60) -> None:
        """Deliver and flush without letting time pass, until nothing moves or for some rounds."""
        for _ in range(rounds):
            for node_id in sorted(self.nodes):
                if self.nodes[node_id].flushes:
                    self.flush(node_id)
            if not self.in_flight:
                return
            for _ in range(len(self.in_flight)):
                if self.in_flight:
                    self.deliver()

    def _fail(self, message: Message) -> None:
        sender = self.nodes[message.sender]
        if sender.core is not None:
            failure = msg.RequestFailed("nobody is there")
            effects = sender.core.receive_response(
                self.now, number=message.number, response=failure
            )
            self._do(sender, effects)

    def _receive(self, node: Node, message: Message) -> None:
        assert node.core is not None
        assert isinstance(message.body, msg.Request)
        self._say(f"{message.sender}>{node.id} {describe(message.body)}")
        token, self._next_token = self._next_token, self._next_token + 1
        node.tokens[token] = (message.sender, message.number)
        self._do(node, node.core.receive(self.now, token=token, request=message.body))

    def _respond(self, node: Node, message: Message) -> None:
        assert node.core is not None
        assert not isinstance(message.body, msg.Request)
        self._say(f"{message.sender}>{node.id} {describe(message.body)}")
        node.results[message.number] = message
        effects = node.core.receive_response(self.now, number=message.number, response=message.body)
        self._do(node, effects)
        node.results.pop(message.number, None)

    def _do(self, node: Node, effects: fx.Effects) -> None:
        for effect in effects.at_once:
            self._do_one(node, effect)
        if effects.write is not None:
            node.disk.election = effects.write.record
        for effect in effects.after_write:
            self._do_one(node, effect)
        self._check(node)

    def _do_one(self, node: Node, effect: fx.Effect) -> None:
        match effect:
            case fx.Send():
                self.in_flight.append(
                    Message(node.id, effect.destination.id, effect.number, effect.request)
                )
            case fx.Answer():
                self._answer(node, effect)
            case fx.AppendProposal():
                entries = [Entry(effect.epoch, text) for text in node.proposals.popleft()]
                self._append(node, effect.base_offset, entries)
            case fx.AppendEpochStart():
                entry = Entry(effect.epoch, f"leader {effect.leader_id}")
                self._append(node, effect.base_offset, [entry])
            case fx.AppendFetched():
                records = node.results[effect.number].records[: effect.batch_count]
                self._append(node, node.disk.end, list(records))
            case fx.TruncateLog():
                self._say(f"{node.id} truncates to {effect.end_offset}")
                node.disk.truncate(effect.end_offset)
            case fx.Committed():
                self._commit(node, effect.high_watermark)
            case fx.LeaderChanged():
                self._note_leader(node, effect)
            case _:
                self._do_rarer(node, effect)

    def _do_rarer(self, node: Node, effect: fx.Effect) -> None:
        match effect:
            case fx.BeginDownload():
                node.download = 0
                self._say(f"{node.id} fetches the snapshot {effect.snapshot_id.offset}")
            case fx.AppendDownload():
                node.download += 1
            case fx.InstallDownload():
                self._install(node, effect.snapshot_id)
            case fx.LeadershipGained():
                self._say(f"{node.id} has begun to lead {effect.epoch}")
            case fx.LeadershipLost():
                self._say(f"{node.id} has ceased to lead {effect.epoch}")
            case fx.ShutdownComplete():
                self._say(f"{node.id} may be closed")
            case _:
                pass

    def _append(self, node: Node, base_offset: int, entries: list[Entry]) -> None:
        if base_offset != node.disk.end:
            raise InvariantBrokenError(f"{node.id} appends at {base_offset}, not {node.disk.end}")
        node.disk.entries += entries

    def _answer(self, node: Node, answer: fx.Answer) -> None:
        sender, number = node.tokens.pop(answer.token)
        response = answer.response
        records: tuple[Entry, ...] = ()
        if isinstance(response, msg.FetchResponse) and response.read_from is not None:
            records = tuple(node.disk.read(response.read_from))
            response = fetched(response, records)
        elif isinstance(response, msg.FetchSnapshotResponse) and response.error is msg.Error.NONE:
            self.nodes[sender].download_source = node.disk.snapshots[response.snapshot_id]
            response = snapshot_part(response)
        self.in_flight.append(Message(node.id, sender, number, response, records))

    def _install(self, node: Node, snapshot_id: OffsetAndEpoch) -> None:
        assert node.core is not None
        if node.download != SNAPSHOT_SIZE:
            raise InvariantBrokenError(f"{node.id} installs half a snapshot")
        node.disk.entries.clear()
        node.disk.start = node.disk.durable_end = snapshot_id.offset
        node.disk.snapshots = {snapshot_id: list(node.download_source)}
        node.committed = list(node.download_source)
        self._say(f"{node.id} installs the snapshot {snapshot_id.offset}")
        effects = node.core.snapshot_installed(self.now, snapshot_id, voters=None, kraft_version=0)
        self._do(node, effects)

    def _commit(self, node: Node, high_watermark: int) -> None:
        if high_watermark > node.disk.durable_end and node.core is not None:
            role = node.core.role.name.value
            if role != "leader" or len(self._voter_ids) == 1:
                raise InvariantBrokenError(f"{node.id} commits what is not durable there")
        node.committed += node.disk.read(len(node.committed))[
            : high_watermark - len(node.committed)
        ]
        self._say(f"{node.id} commits up to {high_watermark}")

    def _note_leader(self, node: Node, change: fx.LeaderChanged) -> None:
        leader = "nobody" if change.leader_id is None else str(change.leader_id)
        self._say(f"{node.id} knows {leader} in epoch {change.epoch}")
        if change.leader_id is not None:
            known = self.leaders.setdefault(change.epoch, change.leader_id)
            if known != change.leader_id:
                raise InvariantBrokenError(f"two leaders in epoch {change.epoch}")

    def _check(self, node: Node) -> None:
        """What is committed is the same everywhere, for ever."""
        shared = min(len(node.committed), len(self.committed))
        if node.committed[:shared] != self.committed[:shared]:
            raise InvariantBrokenError(f"{node.id} has committed something else")
        if len(node.committed) > len(self.committed):
            self.committed = list(node.committed)
        if node.core is not None and node.core.log.end_offset < node.disk.start:
            raise InvariantBrokenError(f"{node.id} has lost its log")


def fetched(response: msg.FetchResponse, records: tuple[Entry, ...]) -> msg.FetchResponse:
    """Return what the fetching core is told of a response with records."""
    start = response.read_from or 0
    return msg.FetchResponse(
        error=response.error,
        leader=response.leader,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        batches=tuple(
            msg.BatchSummary(base_offset=offset, last_offset=offset, epoch=entry.epoch)
            for offset, entry in enumerate(records, start=start)
        ),
    )


def snapshot_part(response: msg.FetchSnapshotResponse) -> msg.FetchSnapshotResponse:
    """Return what the fetching core is told of one part of a snapshot."""
    return msg.FetchSnapshotResponse(
        error=response.error,
        leader=response.leader,
        snapshot_id=response.snapshot_id,
        position=response.position,
        size=SNAPSHOT_SIZE,
        part_size=1,
    )


def describe(body: msg.Request | msg.Response) -> str:
    """Return a message in a few words."""
    match body:
        case msg.VoteRequest():
            kind = "pre-vote" if body.is_pre_vote else "vote"
            return f"asks for a {kind} in {body.epoch}, log {tuple(body.log_end)}"
        case msg.VoteResponse():
            verdict = "grants" if body.is_granted else "refuses"
            return f"{verdict} ({_base(body)})"
        case msg.BeginQuorumEpochRequest():
            return f"says it leads {body.epoch}"
        case msg.EndQuorumEpochRequest():
            preferred = ",".join(str(key.id) for key in body.preferred)
            return f"resigns from {body.epoch} in favour of [{preferred}]"
        case msg.FetchRequest():
            return f"fetches from {tuple(body.position)} in {body.epoch}"
        case msg.FetchResponse():
            return f"answers the fetch ({_fetch_content(body)}{_base(body)})"
        case msg.FetchSnapshotRequest():
            return f"fetches byte {body.position} of snapshot {body.snapshot_id.offset}"
        case msg.FetchSnapshotResponse():
            return f"answers with {body.part_size} of {body.size} bytes ({_base(body)})"
        case msg.DescribeQuorumRequest():
            return "asks about the quorum"
        case _:
            return f"acknowledges ({_base(body)})"


def _fetch_content(body: msg.FetchResponse) -> str:
    if body.diverging is not None:
        return f"diverging at {tuple(body.diverging)}, "
    if body.snapshot_id is not None:
        return f"snapshot {tuple(body.snapshot_id)}, "
    return f"{len(body.batches)} records, committed {body.high_watermark}, "


def _base(body: msg.Response) -> str:
    error = "" if body.error is msg.Error.NONE else f"{body.error.name}, "
    leader = "nobody" if body.leader.leader_id is None else body.leader.leader_id
    return f"{error}{leader} in {body.leader.epoch}"
