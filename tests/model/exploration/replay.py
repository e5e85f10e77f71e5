"""Runs of the real cores, step by step, as runs of the model.

Each verb of a core is one event. From the node as it was before, the model says what it may be
afterwards: what the event itself does, and then whatever timers and won elections do. What the core
is must be among that. What cannot be seen of a core (a leader's progress, a promised high
watermark) is the model's own, so that what follows from it is checked as well.

Where this is looser than the model: any response may count as lost; a process that ended may come
back with any of the promises it had made since it began (the simulator's own properties know which
of them had been shown); one that never was a voter may come back with nothing; a known leader
without a known address is not followed.
"""

from collections import deque
from collections.abc import Iterator

from tests.model.exploration import observing as seen
from tests.model.exploration import outcomes
from tests.model.exploration.actions import restarted
from tests.model.exploration.design import CORRECT
from tests.model.exploration.invariants import STATE_INVARIANTS
from tests.model.exploration.observing import Directories, ObservedCore, Records, log_of, node_of
from tests.model.exploration.state import (
    FOLLOWER,
    LEADER,
    UNATTACHED,
    History,
    Log,
    Node,
    Spent,
    State,
    bit,
    replica_of,
    voters_of,
)

from kvorum.raft.effects import Committed, Effects, Send, SendResponse
from kvorum.raft.messages import Response
from kvorum.raft.replica_key import ReplicaKey

INTERNAL_STEPS_MAX = 5
PICTURES_MAX = 64
SEEN_FIELDS = ("role", "epoch", "leader", "voted", "log", "start", "durable", "watermark", "tally")


class NotAllowedError(AssertionError):
    """A core did what the model does not let a node do."""


class Replay:
    """One run: the model's nodes, and everything that has to be remembered of the cores."""

    def __init__(self, node_count: int) -> None:
        self.problem: str | None = None
        self.is_over = False
        self.event_count = 0
        self.step_count = 0
        self.node_count = node_count
        self.committed: Log = ()
        self.first_voters = 0
        self.records = Records()
        self.directories = Directories()
        self.replaced_count = 0
        self._nodes = [Node() for _ in range(node_count)]
        self._pictures: list[deque[Node]] = [
            deque([node], maxlen=PICTURES_MAX) for node in self._nodes
        ]
        self._sent: dict[tuple[int, int], Send] = {}
        self._leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._counted_by = 0

    def core_class(self) -> type[ObservedCore]:
        replay = self

        class ReplayedCore(ObservedCore):
            observer = staticmethod(replay.observe)

        return ReplayedCore

    def observe(self, core: ObservedCore, event: seen.Event, effects: Effects) -> None:
        """Take in one step of a core, unless one before was not allowed.

        A disk that was replaced ends the replay where voters are known by their ids alone: to them
        the node is the voter still, although what that had promised is gone.
        """
        if isinstance(event, seen.Started):
            self._look_at_directory(core)
        if self.problem is None and not self.is_over:
            try:
                self._observe(core, event, effects)
            except NotAllowedError as error:
                # Not raised here: the caller of the core would take it for a failure of the core.
                self.problem = str(error)

    def _look_at_directory(self, core: ObservedCore) -> None:
        key = core.own_key
        own, directory = key.id - 1, self.directories.index(key)
        self.directories.voters(core.history.voters)
        if directory != self._nodes[own].directory:
            node = self._nodes[own] = Node(directory=directory)
            self._pictures[own] = deque([node], maxlen=PICTURES_MAX)
            self.replaced_count += 1
            self.is_over |= key.id in self.directories.known_by_id

    def _observe(self, core: ObservedCore, event: seen.Event, effects: Effects) -> None:
        own = core.own_key.id - 1
        self.event_count += 1
        if not self.first_voters:
            # A controller that was formatted without voters knows none at first.
            self.first_voters = self.directories.voters(core.history.voters_at(0))
        before = self._nodes[own]
        self._note_sends(own, event, effects)
        way: list[Node] | None = None
        after = before
        for known in _known_before(event, before):
            after = node_of(
                core, self._log_of(core, known), own_key=core.own_key, directories=self.directories
            )
            way = self._allowed(own, event, effects, before=before, after=after)
            if way is not None:
                break
        if way is None:
            raise NotAllowedError(
                f"node {own + 1}, {event}: the model lets nothing make of\n"
                f"  {_short(before)}\nwhat it has become,\n  {_short(after)}"
            )
        for node in way:
            self._note_leader(own, node)
        self._take_over(own, event, before=before, way=way)

    def _log_of(self, core: ObservedCore, known: Log) -> Log:
        return log_of(
            core,
            known=known,
            committed=self.committed,
            records=self.records,
            directories=self.directories,
            first_voters=self.first_voters,
        )

    def _note_sends(self, own: int, event: seen.Event, effects: Effects) -> None:
        if isinstance(event, seen.Started):
            self._sent = {key: send for key, send in self._sent.items() if key[0] != own}
        for effect in (*effects.at_once, *effects.after_write):
            if isinstance(effect, Send):
                self._sent[own, effect.number] = effect

    def _allowed(
        self, own: int, event: seen.Event, effects: Effects, *, before: Node, after: Node
    ) -> list[Node] | None:
        """Return what the model's node becomes, step by step, up to what was seen."""
        everything = (*effects.at_once, *effects.after_write)
        told = {one.high_watermark for one in everything if isinstance(one, Committed)}
        for start in self._after_event(own, event, effects, before=before, after=after):
            ways = [[start]]
            for _ in range(INTERNAL_STEPS_MAX):
                for way in ways:
                    knows_all = told <= {node.watermark for node in way}
                    if knows_all and _looks_like(own, way[-1], after):
                        return [*way[:-1], _merged(way[-1], after)]
                ways = [
                    [*way, following]
                    for way in ways
                    for following in outcomes.internal(self, own, way[-1], after)
                ]
        return None

    def _after_event(
        self, own: int, event: seen.Event, effects: Effects, *, before: Node, after: Node
    ) -> Iterator[Node]:
        match event:
            case seen.Started():
                yield from self._restarted(own, after)
            case seen.Asked():
                answer = _answer_to(event.token, effects)
                yield from outcomes.asked(self, own, before, event.request, answer, after)
            case seen.Heard():
                send = self._sent.pop((own, event.number), None)
                yield from outcomes.heard(self, own, before, event.response, send, effects, after)
            case _:
                yield from outcomes.happened(self, own, before, event, after)

    def _restarted(self, own: int, after: Node) -> Iterator[Node]:
        """Yield what a node may come back as that had any of its former states when it ended.

        One that never was a voter may have lost everything: it had promised nothing that counts.
        """
        for picture in reversed(self._pictures[own]):
            # A lone voter has begun an epoch by now, and written its first batch.
            for end in (after.end, after.end - 1, after.end - 3):
                is_part = picture.durable <= end <= picture.end
                if is_part and after.log[:end] == picture.log[:end]:
                    yield self._restart_of(own, picture._replace(durable=end), after)
            if after.start == after.end <= len(self.committed):
                # A fetched snapshot had taken the log's place when the process ended.
                content = self.committed[: after.end]
                yield self._restart_of(own, picture._replace(log=content, durable=after.end), after)
        new = Node(directory=after.directory)
        if not self.directories.ever_voters & bit(replica_of(own, new)):
            yield self._restart_of(own, new, after)

    def _restart_of(self, own: int, node: Node, after: Node) -> Node:
        back = restarted(
            CORRECT, own, node, first_voters=self.first_voters, node_count=len(self._nodes)
        )
        return back._replace(start=after.start)

    def _take_over(self, own: int, event: seen.Event, *, before: Node, way: list[Node]) -> None:
        """Make a node what it has become, and check what concerns all nodes."""
        node = self._nodes[own] = way[-1]
        if isinstance(event, seen.Started):
            self._pictures[own].clear()
        if node != before or isinstance(event, seen.Started):
            self._pictures[own].extend(way)
        is_new_role = (node.role, node.epoch) != (before.role, before.epoch)
        if is_new_role or node.watermark != before.watermark or node.end < before.end:
            self.check()

    def _note_leader(self, own: int, node: Node) -> None:
        """Note that a node leads, and what it has found to be committed."""
        if node.role != LEADER:
            return
        replica = replica_of(own, node)
        self._leaders[node.epoch] = self._leaders.get(node.epoch, 0) | bit(replica)
        self.records.leaders[node.epoch] = replica
        if node.watermark > len(self.committed):
            self.committed = node.log[: node.watermark]
            self._counted_by = self.voters(node)

    def note_vote(self, epoch: int, *, voter: int, candidate: int) -> None:
        key = (epoch, voter)
        self._votes[key] = self._votes.get(key, 0) | bit(candidate)

    def replica(self, key: ReplicaKey | None) -> int:
        return self.directories.replica(key)

    def voters(self, node: Node) -> int:
        return voters_of(node.log, self.first_voters)

    def check(self) -> None:
        """Demand every invariant of the model of all nodes as they are now."""
        state = self.state()
        for name, holds in STATE_INVARIANTS.items():
            if not holds(state):
                nodes = "\n  ".join(_short(node) for node in state.nodes)
                raise NotAllowedError(f"{name} does not hold:\n  {nodes}")

    def state(self) -> State:
        epochs = range(max((node.epoch for node in self._nodes), default=0) + 1)
        history = History(
            leaders=tuple(self._leaders.get(epoch, 0) for epoch in epochs),
            votes=tuple(
                tuple(mask for (of_epoch, _), mask in self._votes.items() if of_epoch == epoch)
                for epoch in epochs
            ),
            committed=self.committed,
            counted_by=self._counted_by,
        )
        return State(tuple(self._nodes), (), history, Spent(), self.first_voters)


def _known_before(event: seen.Event, before: Node) -> Iterator[Log]:
    """Yield the log that a node may have had where its start lies: a snapshot may replace it."""
    if not isinstance(event, seen.Installed):
        yield before.log
    if isinstance(event, seen.Installed | seen.Started):
        yield ()


def _answer_to(token: int, effects: Effects) -> Response | None:
    for effect in (*effects.at_once, *effects.after_write):
        if isinstance(effect, SendResponse) and effect.token == token:
            return effect.response
    return None


def _looks_like(own: int, node: Node, after: Node) -> bool:
    """Tell whether a core shows what a node of the model is.

    A core that led an epoch need not keep its vote for itself.
    """
    if node.leader == own:
        node = node._replace(voted=after.voted)
    # The vote for itself of one that is not a voter does not count, and is not noted by a core.
    own_vote = bit(replica_of(own, node))
    node = node._replace(tally=node.tally & ~own_vote | after.tally & own_vote)
    is_without_address = (
        node.role == FOLLOWER and after.role == UNATTACHED and node.leader == after.leader
    )
    if is_without_address:
        node = node._replace(role=UNATTACHED)
    return all(getattr(node, name) == getattr(after, name) for name in SEEN_FIELDS)


def _merged(node: Node, after: Node) -> Node:
    """Return the model's node with what else can be seen of the core."""
    return node._replace(
        role=after.role, has_heard=after.has_heard, download=after.download, log=after.log
    )


def _short(node: Node) -> str:
    epochs = [entry.epoch for entry in node.log[-6:]]
    return str(node._replace(log=())) + f" end {node.end}, last epochs {epochs}"
