"""A quorum in one thread: real cores, and disks, a network and a clock that obey commands."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.model.scenarios.disk import (
    NO_SNAPSHOT,
    SNAPSHOT_SIZE,
    Disk,
    Entry,
    Snapshot,
    epoch_start,
    fetched,
    new_voters,
    snapshot_part,
    voter_names,
)
from tests.model.scenarios.requests_from_outside import (
    LISTENER,
    NO_TARGETS,
    TARGETS,
    Reassigning,
    directory_of,
    endpoints_of,
    ends_targets,
    image_of,
    request_for,
    told,
)
from tests.model.scenarios.trace_words import describe

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    HandOver,
    Reached,
    RemoveVoter,
)
from kvorum.controller.quorum_reassignment.requests import VoterChange
from kvorum.metadata.image import MetadataImage
from kvorum.node.raft.raft_client import describe_quorum
from kvorum.raft import (
    Destination,
    Identity,
    NotLeaderError,
    OffsetAndEpoch,
    RaftConfig,
    RaftCore,
    ReplicaKey,
    Voter,
    VoterSet,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.errors import KRaftVersionUpgradeError
from kvorum.raft.roles import RoleName
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID

OUTSIDE = 0
"""The sender of requests that no node sends: the reader of a scenario."""

STEP = -1
"""The sender of a step towards the target voters: the leader itself."""


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
    download_source: Snapshot = NO_SNAPSHOT
    knows_pre_votes: bool = True
    reassigning: Reassigning | None = None
    steps: dict[int, VoterChange] = field(default_factory=dict[int, VoterChange])

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, directory_of(self.disk.directory))


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
        self._bootstrap_ids: list[int] = []
        self._config = RaftConfig()
        self._next_token = 1

    def bring_up(self, voter_ids: Iterable[int]) -> None:
        """Make voters with empty disks and start them."""
        self._voter_ids = list(voter_ids)
        for voter_id in self._voter_ids:
            self.nodes[voter_id] = Node(voter_id, can_vote=True, disk=Disk(voter_id))
        for voter_id in self._voter_ids:
            self.start(voter_id)

    def bring_up_formatted(self, voter_ids: Iterable[int]) -> None:
        """Make voters whose disks say who the first voters are, and start them."""
        ids = list(voter_ids)
        voters = VoterSet.of(
            Voter(ReplicaKey(i, directory_of(i)), endpoints_of(i), 0, 1) for i in ids
        )
        self._bootstrap_ids = ids
        for voter_id in ids:
            disk = Disk(voter_id, snapshots={BOOTSTRAP_SNAPSHOT_ID: Snapshot((), voters, 1)})
            self.nodes[voter_id] = Node(voter_id, can_vote=True, disk=disk)
        for voter_id in ids:
            self.start(voter_id)

    def add_controller(self, node_id: int) -> None:
        """Make a controller with an empty disk, which is not a voter yet, and start it."""
        self.nodes[node_id] = Node(node_id, can_vote=True, disk=Disk(node_id))
        self.start(node_id)

    def let_join(self) -> None:
        """Let controllers that start from now on ask to become voters."""
        self._config = RaftConfig(auto_join=True)

    def upgrade(self, node_id: int, kraft_version: int) -> None:
        """Ask a node for another kraft.version, and tell what it says."""
        node = self.nodes[node_id]
        if node.core is None:
            raise ValueError(f"{node_id} is down")
        epoch = node.core.role.epoch
        try:
            is_new, effects = node.core.upgrade_kraft_version(
                self.now, epoch=epoch, kraft_version=kraft_version, validate_only=False
            )
        except KRaftVersionUpgradeError as error:
            self._say(f"{node_id} refuses: {error}")
            return
        self._say(f"{node_id} {'agrees' if is_new else 'has that already'}")
        self._do(node, effects)

    def leader_id(self) -> int:
        """Return the id of the running leader of the highest epoch."""
        epochs = {
            node.id: node.core.role.epoch
            for node in self.nodes.values()
            if node.core is not None and node.core.role.name is RoleName.LEADER
        }
        return max(epochs, key=lambda node_id: epochs[node_id])

    def make_old(self, node_id: int) -> None:
        """Let a node be one that does not know pre-votes."""
        self.nodes[node_id].knows_pre_votes = False

    def cut_off(self, node_id: int) -> None:
        """Let nothing reach a node, and nothing of it reach others."""
        self.cut.add(node_id)

    def heal(self, node_id: int) -> None:
        """Undo `cut_off`."""
        self.cut.discard(node_id)

    def hold(self, node_id: int) -> None:
        """Make a node's log durable only when told."""
        self.nodes[node_id].flushes = False

    def release(self, node_id: int) -> None:
        """Undo `hold`."""
        self.nodes[node_id].flushes = True

    def wipe(self, node_id: int, directory: int) -> None:
        """Give a node that is down an empty disk with another directory id."""
        self.nodes[node_id].disk = Disk(directory)
        self._say(f"{node_id} has an empty disk, directory {directory}")

    def add_observer(self, node_id: int) -> None:
        """Make an observer with an empty disk and start it."""
        self.nodes[node_id] = Node(node_id, can_vote=False, disk=Disk(node_id))
        self.start(node_id)

    def start(self, node_id: int) -> None:
        """Start a node on what its disk holds."""
        node = self.nodes[node_id]
        node.core = RaftCore(
            self._identity(node),
            config=self._config,
            log=node.disk.view(),
            history=node.disk.history(self._static_voters()),
            random=Random(self._random.random()),
        )
        latest = node.disk.latest_snapshot()
        node.committed = [] if latest is None else list(latest[1].entries)
        self._say(f"{node_id} starts")
        self._do(node, node.core.start(self.now, stored=node.disk.election))

    def _static_voters(self) -> VoterSet:
        return VoterSet.of(Voter(ReplicaKey(i), endpoints_of(i)) for i in self._voter_ids)

    def _identity(self, node: Node) -> Identity:
        known_ids = self._voter_ids or self._bootstrap_ids
        return Identity(
            key=node.key,
            endpoints=endpoints_of(node.id) if node.can_vote else (),
            listener_name=LISTENER,
            can_vote=node.can_vote,
            bootstrap=tuple(Destination(i, f"host{i}", 9093) for i in known_ids if i != node.id),
        )

    def crash(self, node_id: int) -> None:
        """Stop a node at once; what it had not made durable is gone."""
        node = self.nodes[node_id]
        node.core = node.reassigning = None
        node.steps.clear()
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
        except NotLeaderError:
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
        end_offset = len(node.committed)
        snapshot_id = OffsetAndEpoch(end_offset, node.committed[-1].epoch)
        history = node.core.history
        snapshot = Snapshot(
            tuple(node.committed),
            history.recorded_voters_at(end_offset),
            history.kraft_version_at(end_offset),
        )
        node.disk.snapshots = {snapshot_id: snapshot}
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

    def ask(self, node_id: int, request: msg.Request) -> None:
        """Put a request to a node from outside; the answer is traced when it comes."""
        node = self.nodes[node_id]
        if node.core is None:
            raise ValueError(f"{node_id} is down")
        token, self._next_token = self._next_token, self._next_token + 1
        node.tokens[token] = (OUTSIDE, token)
        self._do(node, node.core.receive(self.now, token=token, request=request))

    # --- the reassignment of the quorum ---

    def take_steps(self) -> bool:
        """Let every active leader look for a step to take; tell whether one was taken."""
        taken = [self._take_step(node) for node in self.nodes.values()]
        return any(taken)

    def _take_step(self, node: Node) -> bool:
        if node.core is None or node.reassigning is None:
            return False
        image = self._image(entry.text for entry in node.committed)
        decided = node.reassigning.decide(image, describe_quorum(node.core, self.now), self.now)
        if decided is None:
            return False
        text, step = decided
        self._say(f"{node.id} works towards {text}: {told(step)}")
        match step:
            case AddVoter() | RemoveVoter():
                self._change_voters(node, step)
            case HandOver():
                self.resign(node.id)
            case Reached():
                self._end_targets(node, text)
            case Blocked():
                return False
        return True

    def _image(self, texts: Iterable[str]) -> MetadataImage:
        return image_of(texts, [node.id for node in self.nodes.values() if node.can_vote])

    def _change_voters(self, node: Node, step: VoterChange) -> None:
        assert node.core is not None
        assert node.reassigning is not None
        node.reassigning.is_busy = True
        token, self._next_token = self._next_token, self._next_token + 1
        node.tokens[token] = (STEP, token)
        node.steps[token] = step
        self._do(node, node.core.receive(self.now, token=token, request=request_for(step)))

    def _end_targets(self, node: Node, text: str) -> None:
        """Propose the end of target voters, unless that or others are in the log by now."""
        entries = [*node.committed, *node.disk.read(len(node.committed))]
        if ends_targets(self._image(entry.text for entry in entries), text):
            self.propose(node.id, [NO_TARGETS])

    def want(self, node_id: int, target_text: str) -> None:
        """Propose other voters to a node; an empty text means the end of the target voters."""
        self.propose(node_id, [f"{TARGETS}{target_text}" if target_text else NO_TARGETS])

    # --- messages ---

    def deliver(self, index: int = 0) -> None:
        """Hand over one message, or let it fail where no node is there to take it."""
        message = self.in_flight.pop(index)
        receiver = self.nodes[message.receiver]
        is_lost = receiver.core is None or {message.sender, message.receiver} & self.cut
        if isinstance(message.body, msg.Request):
            if is_lost:
                self._fail(message, msg.RequestFailed("nobody is there"))
            elif is_unknown(message.body, receiver):
                self._fail(message, msg.RequestFailed("no such version", lacks_version=True))
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

    def _fail(self, message: Message, failure: msg.RequestFailed) -> None:
        sender = self.nodes[message.sender]
        if sender.core is not None:
            effects = sender.core.receive_response(
                self.now, number=message.number, response=failure
            )
            self._do(sender, effects)

    def _receive(self, node: Node, message: Message) -> None:
        assert node.core is not None
        assert isinstance(message.body, msg.Request)
        self._say(f"{message.sender}>{node.id} {describe(message.body)}")
        if isinstance(message.body, msg.ApiVersionsRequest):
            # Not the core answers this, but the node around it.
            known = msg.ApiVersionsResponse((0, 1))
            self.in_flight.append(Message(node.id, message.sender, message.number, known))
            return
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
            case fx.SendResponse():
                self._answer(node, effect)
            case fx.AppendProposal():
                entries = [Entry(effect.epoch, text) for text in node.proposals.popleft()]
                self._append(node, effect.base_offset, entries)
            case fx.AppendEpochStart():
                self._append(node, effect.base_offset, epoch_start(effect))
            case fx.AppendVoters():
                self._say(f"{node.id} writes the voters {voter_names(effect.voters)}")
                entries = new_voters(effect.epoch, effect.voters, effect.kraft_version)
                self._append(node, effect.base_offset, entries)
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
                node.reassigning = Reassigning(self._config)
            case fx.LeadershipLost():
                self._say(f"{node.id} has ceased to lead {effect.epoch}")
                node.reassigning = None
            case fx.ShutdownComplete():
                self._say(f"{node.id} may be closed")
            case _:
                pass

    def _append(self, node: Node, base_offset: int, entries: list[Entry]) -> None:
        if base_offset != node.disk.end:
            raise InvariantBrokenError(f"{node.id} appends at {base_offset}, not {node.disk.end}")
        node.disk.entries += entries

    def _answer(self, node: Node, answer: fx.SendResponse) -> None:
        sender, number = node.tokens.pop(answer.token)
        response = answer.response
        if sender == STEP:
            self._say(f"{node.id} {describe(response)}")
            if node.reassigning is not None:
                node.reassigning.answered(node.steps.pop(number), response)
            return
        records: tuple[Entry, ...] = ()
        if isinstance(response, msg.FetchResponse) and response.read_from is not None:
            records = tuple(node.disk.read(response.read_from))
            response = fetched(response, records)
        elif isinstance(response, msg.FetchSnapshotResponse) and response.error is msg.Error.NONE:
            if sender != OUTSIDE:
                self.nodes[sender].download_source = node.disk.snapshots[response.snapshot_id]
            response = snapshot_part(response)
        if sender == OUTSIDE:
            self._say(f"{node.id} {describe(response)}")
            return
        self.in_flight.append(Message(node.id, sender, number, response, records))

    def _install(self, node: Node, snapshot_id: OffsetAndEpoch) -> None:
        assert node.core is not None
        if node.download != SNAPSHOT_SIZE:
            raise InvariantBrokenError(f"{node.id} installs half a snapshot")
        node.disk.entries.clear()
        node.disk.start = node.disk.durable_end = snapshot_id.offset
        snapshot = node.download_source
        node.disk.snapshots = {snapshot_id: snapshot}
        node.committed = list(snapshot.entries)
        self._say(f"{node.id} installs the snapshot {snapshot_id.offset}")
        effects = node.core.snapshot_installed(
            self.now, snapshot_id, voters=snapshot.voters, kraft_version=snapshot.kraft_version
        )
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
        """Committed records are the same everywhere, for ever."""
        shared = min(len(node.committed), len(self.committed))
        if node.committed[:shared] != self.committed[:shared]:
            raise InvariantBrokenError(f"{node.id} has committed something else")
        if len(node.committed) > len(self.committed):
            self.committed = list(node.committed)
        if node.core is not None and node.core.log.end_offset < node.disk.start:
            raise InvariantBrokenError(f"{node.id} has lost its log")


def is_unknown(request: msg.Request, receiver: Node) -> bool:
    """Tell whether a node is from before a request was made."""
    is_pre_vote = isinstance(request, msg.VoteRequest) and request.is_pre_vote
    return is_pre_vote and not receiver.knows_pre_votes
