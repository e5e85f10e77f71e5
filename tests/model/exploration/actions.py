"""Everything that can happen next in a state: one function for each kind of step."""

from collections.abc import Iterator
from typing import TypeAlias

from tests.model.exploration import elections, network, reconfiguration, replication, target_steps
from tests.model.exploration.design import Bounds, Design
from tests.model.exploration.elections import moved
from tests.model.exploration.replication import no_progress
from tests.model.exploration.state import (
    CANDIDATE,
    FOLLOWER,
    LEADER,
    NOBODY,
    PROSPECTIVE,
    REACHED,
    RESIGNED,
    UNATTACHED,
    Entry,
    History,
    Message,
    Node,
    Reply,
    Request,
    Spent,
    State,
    bit,
    counts_as,
    is_majority,
    may_stand,
    node_of,
    replica_of,
    voters_of,
    with_node,
)


def restarted(design: Design, own: int, node: Node, *, first_voters: int, node_count: int) -> Node:
    """Return a node after a power cut and a restart.

    Where a disk was replaced, everything is gone, the promises too: the node is another replica.
    """
    log = node.log[: node.durable]
    vote = NOBODY if design.forgets_vote_in_crash else node.voted
    node = node._replace(log=log, watermark=0, voted=vote)
    if node.leader == own:
        return _former_leader(design, own, node, node_count=node_count)
    has_own_vote = node.voted == replica_of(own, node) and node.leader == NOBODY
    if has_own_vote and may_stand(design, own, node, first_voters):
        return moved(node, CANDIDATE, epoch=node.epoch)._replace(tally=counts_as(design, own, node))
    role = UNATTACHED if node.leader == NOBODY else FOLLOWER
    return moved(node, role, epoch=node.epoch, leader=node.leader)


def _former_leader(design: Design, own: int, node: Node, *, node_count: int) -> Node:
    """Return a node that finds that it led: it never leads on, for its last records may be gone."""
    if design.leads_on_after_restart:
        leader = moved(node, LEADER, epoch=node.epoch, leader=own)
        return leader._replace(progress=no_progress(node_count))
    if design.votes_in_epoch_it_led:
        return moved(node, UNATTACHED, epoch=node.epoch)._replace(voted=NOBODY)
    return moved(node, RESIGNED, epoch=node.epoch, leader=own)


def with_new_disk(node: Node) -> Node:
    """Return a node that begins again, with an empty directory."""
    return Node(directory=node.directory + 1)


def may_lose_disk(state: State, own: int) -> bool:
    """Tell whether a majority of the voters has kept its disks when this one is replaced too.

    That is asked of all voters that may count, now or once a record is committed.
    """
    kept = sum(bit(replica_of(i, node)) for i, node in enumerate(state.nodes) if i != own)
    logs = [state.history.committed, *(node.log for node in state.nodes)]
    sets = {voters_of(log, state.first_voters) for log in logs}
    return all(is_majority(kept, voters) for voters in sets)


def noted(state: State, index: int, after: Node) -> State:
    """Return the state in which a node has become another, with the history of that."""
    before = state.nodes[index]
    if after == before:
        return state
    history = state.history
    if after.voted not in {NOBODY, before.voted if after.epoch == before.epoch else NOBODY}:
        history = _with_vote(history, index, after)
    if after.role == LEADER and before.role != LEADER:
        leaders = list(history.leaders)
        leaders[after.epoch] |= bit(replica_of(index, after))
        history = history._replace(leaders=tuple(leaders))
    if after.role == LEADER and after.watermark > len(history.committed):
        history = history._replace(
            committed=after.log[: after.watermark],
            counted_by=voters_of(after.log, state.first_voters),
        )
    return with_node(state, index, after)._replace(history=history)


def without_stale_replies(before: State, after: State) -> State:
    """Return a state in which no node awaits a reply that has moved since it asked."""
    for index, (one, other) in enumerate(zip(before.nodes, after.nodes, strict=True)):
        if (one.role, one.epoch) != (other.role, other.epoch):
            after = cut_off(after, index)
    return after


def cut_off(state: State, index: int) -> State:
    """Return the state in which a node awaits no reply to what it asked before.

    Its requests may still arrive. A reply that was given to what the node was before must not
    reach what it is now.
    """
    network = [
        one._replace(is_awaited=False)
        if isinstance(one, Request) and node_of(one.sender) == index
        else one
        for one in state.network
        if isinstance(one, Request) or node_of(one.receiver) != index
    ]
    return state._replace(network=tuple(sorted(network)))


def forgotten_votes(history: History, index: int) -> History:
    """Return a history without a node's votes: with another directory it has not voted yet."""
    votes = tuple((*row[:index], 0, *row[index + 1 :]) for row in history.votes)
    return history._replace(votes=votes)


def _with_vote(history: History, index: int, node: Node) -> History:
    votes = [list(of_epoch) for of_epoch in history.votes]
    votes[node.epoch][index] |= bit(node.voted)
    return history._replace(votes=tuple(map(tuple, votes)))


Label: TypeAlias = tuple[str | int, ...]
Step: TypeAlias = tuple[Label, State]


def first_state(bounds: Bounds) -> State:
    """Return the state that an exploration begins in."""
    epochs = range(bounds.epochs + 1)
    voters = (1 << bounds.voters) - 1
    nodes = tuple(Node() for _ in range(bounds.nodes))
    history = History((0,) * len(epochs), tuple((0,) * bounds.nodes for _ in epochs))
    state = State(nodes, (), history, Spent(), voters)
    return _led(state, bounds) if bounds.is_led else state


def state_after_prologue(design: Design, bounds: Bounds, first: State | None = None) -> State:
    """Return the state after the steps that are given; raises LookupError if one cannot be."""
    state = first_state(bounds) if first is None else first
    for wanted in bounds.prologue:
        following = [after for label, after in steps(design, bounds, state) if say(label) == wanted]
        if not following:
            raise LookupError(f"no such step: {wanted}")
        state = following[0]
    return state


def say(label: Label) -> str:
    return " ".join(map(str, label))


def _led(state: State, bounds: Bounds) -> State:
    """Return the state in which node 0 leads epoch 1 and has committed its first record."""
    log = (Entry(1, 0),)
    heard = bounds.pre_votes
    follower = Node(FOLLOWER, 1, 0, log=log, durable=1, watermark=1, has_heard=heard)
    progress = (tuple(int(i > 0) for i in range(bounds.nodes)),)
    leader = Node(LEADER, 1, 0, log=log, durable=1, watermark=1, progress=progress)
    nodes = (leader, *(follower for _ in state.nodes[1:]))
    leaders = (0, 1, *state.history.leaders[2:])
    history = state.history._replace(leaders=leaders, committed=log, counted_by=state.first_voters)
    return state._replace(nodes=nodes, history=history)


def steps(design: Design, bounds: Bounds, state: State) -> Iterator[Step]:
    """Yield every step that may be taken, with the state it leads to."""
    for label, after in _all_steps(design, bounds, state):
        if after.network and not design.believes_stale_replies:
            yield label, without_stale_replies(state, after)
        else:
            yield label, after


def _all_steps(design: Design, bounds: Bounds, state: State) -> Iterator[Step]:
    living = [own for own in range(len(state.nodes)) if not state.dead >> own & 1]
    for own in living:
        yield from _timers(design, bounds, state, own)
        yield from _elected(design, bounds, state, own)
        yield from _log_of_leader(design, bounds, state, own)
        yield from _targets_of_leader(design, bounds, state, own)
        yield from _disk(design, bounds, state, own)
        for request in network.requests(design, state, own):
            if node_of(request.receiver) in living:
                yield from _asked(design, bounds, state, request)
    for message in state.network:
        yield from _arrived(design, bounds, state, message)


def _timers(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Step]:
    """Timers run out at any time: the model has no clock."""
    node = state.nodes[own]
    stands = may_stand(design, own, node, state.first_voters)
    if design.removed_waits_for_others:
        stands = bool(voters_of(node.log, state.first_voters) & bit(replica_of(own, node)))
    may_go_on = node.epoch < bounds.epochs and stands
    if may_go_on and node.role in {UNATTACHED, FOLLOWER, CANDIDATE}:
        if bounds.pre_votes:
            yield ("times out", own), noted(state, own, elections.prospective(design, own, node))
        elif elections.may_stand(design, node):
            yield ("stands", own), noted(state, own, elections.candidate(design, own, node))
    if node.role == PROSPECTIVE:
        yield ("gives up", own), noted(state, own, elections.given_up(design, own, node))
    if node.role == LEADER and state.spent.resignations < bounds.resignations:
        gone = elections.moved(node, RESIGNED, epoch=node.epoch, leader=own)
        spent = state.spent._replace(resignations=state.spent.resignations + 1)
        yield ("resigns", own), noted(state, own, gone)._replace(spent=spent)
    if node.role == RESIGNED and node.epoch < bounds.epochs:
        free = elections.moved(node, UNATTACHED, epoch=node.epoch + 1)
        yield ("leaves its epoch", own), noted(state, own, free)


def _elected(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Step]:
    node = state.nodes[own]
    voters = voters_of(node.log, state.first_voters)
    if node.role not in {PROSPECTIVE, CANDIDATE} or not is_majority(node.tally, voters):
        return
    if node.role == CANDIDATE:
        leader = elections.leading(
            own, node, node_count=len(state.nodes), syncs=bounds.syncs_at_once
        )
        leader = replication.counted(design, own, leader, first_voters=state.first_voters)
        yield ("leads", own), noted(state, own, leader)
    elif node.epoch < bounds.epochs and elections.may_stand(design, node):
        yield ("stands", own), noted(state, own, elections.candidate(design, own, node))


def _log_of_leader(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Step]:
    node, spent = state.nodes[own], state.spent
    if node.role != LEADER:
        return
    if spent.writes < bounds.writes:
        entry = Entry(node.epoch, own, spent.writes + 1)
        after = _written(design, bounds, state, own, entry)
        yield ("writes", own), after._replace(spent=spent._replace(writes=spent.writes + 1))
    if spent.changes < bounds.changes and reconfiguration.may_change(design, node):
        voters = reconfiguration.voters_to_change(design, node, first_voters=state.first_voters)
        replicas = [replica_of(index, one) for index, one in enumerate(state.nodes)]
        for changed in reconfiguration.changes(design, voters, replicas=replicas):
            if not target_steps.is_admitted(design, bounds, state, own, changed):
                continue
            entry = Entry(node.epoch, replica_of(own, node), voters=changed)
            after = _written(design, bounds, state, own, entry)
            more = spent._replace(changes=spent.changes + 1)
            yield ("changes voters to", own, changed), after._replace(spent=more)
    if reconfiguration.is_removed(own, node, first_voters=state.first_voters):
        gone = elections.moved(node, RESIGNED, epoch=node.epoch, leader=own)
        yield ("steps down", own), noted(state, own, gone)


def _targets_of_leader(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Step]:
    """The operator says which voters are wanted, and the leader takes a step there."""
    spent = state.spent
    for (verb, targets), entry in target_steps.statements(bounds, state, own):
        more = spent._replace(target_changes=spent.target_changes + 1)
        yield (verb, own, targets), _written(design, bounds, state, own, entry)._replace(spent=more)
    if not spent.target_changes:
        return
    node, node_count = state.nodes[own], len(state.nodes)
    voters = voters_of(node.log, state.first_voters)
    for verb, replica, fetching in target_steps.decisions(design, bounds, state, own):
        label = (verb, own, replica, fetching)
        if verb == "hands over":
            gone = elections.moved(node, RESIGNED, epoch=node.epoch, leader=own)
            yield label, noted(state, own, gone)
        elif verb == "clears the targets":
            if target_steps.may_clear(design, node, reached=voters, node_count=node_count):
                entry = Entry(node.epoch, replica_of(own, node), targets=REACHED)
                yield label, _written(design, bounds, state, own, entry)
        elif reconfiguration.may_change(design, node):
            entry = Entry(node.epoch, replica_of(own, node), voters=voters ^ bit(replica))
            yield label, _written(design, bounds, state, own, entry)


def _written(design: Design, bounds: Bounds, state: State, own: int, entry: Entry) -> State:
    node = state.nodes[own]
    log = (*node.log, entry)
    durable = len(log) if bounds.syncs_at_once else node.durable
    return _counted(design, state, own, node._replace(log=log, durable=durable))


def _counted(design: Design, state: State, own: int, node: Node) -> State:
    return noted(
        state, own, replication.counted(design, own, node, first_voters=state.first_voters)
    )


def _disk(design: Design, bounds: Bounds, state: State, own: int) -> Iterator[Step]:
    node, spent = state.nodes[own], state.spent
    if node.durable < node.end:
        yield ("flushes", own), _counted(design, state, own, replication.flushed(node))
    limit = node.end if design.snapshots_uncommitted else node.watermark
    if spent.snapshots < bounds.snapshots and node.start < limit:
        after = noted(state, own, replication.with_snapshot(design, node))
        more = spent._replace(snapshots=spent.snapshots + 1)
        yield ("takes a snapshot", own), after._replace(spent=more)
    if spent.crashes < bounds.crashes:
        back = restarted(
            design, own, node, first_voters=state.first_voters, node_count=len(state.nodes)
        )
        after = cut_off(noted(state, own, back), own)
        yield ("crashes", own), after._replace(spent=spent._replace(crashes=spent.crashes + 1))
    if spent.replacements < bounds.replacements and may_lose_disk(state, own):
        more = spent._replace(replacements=spent.replacements + 1)
        yield ("has its disk replaced", own), _replaced(state, own)._replace(spent=more)
    if spent.deaths < bounds.deaths:
        more = spent._replace(deaths=spent.deaths + 1)
        yield ("dies", own), state._replace(spent=more, dead=state.dead | bit(own))


def _replaced(state: State, own: int) -> State:
    state = state._replace(history=forgotten_votes(state.history, own))
    return cut_off(with_node(state, own, with_new_disk(state.nodes[own])), own)


def _asked(design: Design, bounds: Bounds, state: State, request: Request) -> Iterator[Step]:
    """A request is answered at once, or its reply is lost; or it waits on the network."""
    yield from _delivered(design, bounds, state, request)
    if len(state.network) < bounds.delayed:
        yield ("sends", *_way(request)), _sent(state, request)


def _arrived(design: Design, bounds: Bounds, state: State, message: Message) -> Iterator[Step]:
    rest = list(state.network)
    rest.remove(message)
    without = state._replace(network=tuple(rest))
    yield ("lost", *_way(message)), without
    if isinstance(message, Reply):
        yield (
            ("late reply to", node_of(message.receiver)),
            _with_reply(design, bounds, without, message),
        )
    else:
        yield from _delivered(design, bounds, without, message)


def _delivered(design: Design, bounds: Bounds, state: State, request: Request) -> Iterator[Step]:
    node, reply = network.answered(design, state, request)
    label = _way(request)
    after = noted(state, node_of(request.receiver), node)
    if not request.is_awaited:
        yield (*label, reply.verdict, "too late"), after
        return
    yield (*label, reply.verdict), _with_reply(design, bounds, after, reply)
    if bounds.partial_fetches and reply.verdict == "records" and len(reply.entries) > 1:
        part = reply._replace(entries=reply.entries[:1])
        yield (*label, "one record"), _with_reply(design, bounds, after, part)
    if after is not state:
        yield (*label, reply.verdict, "reply lost"), after
    if len(state.network) < bounds.delayed:
        yield (*label, reply.verdict, "reply late"), _sent(after, reply)


def _way(message: Message) -> tuple[str, int, int]:
    """Return what a message is, and from which node to which."""
    return message.kind, node_of(message.sender), node_of(message.receiver)


def _with_reply(design: Design, bounds: Bounds, state: State, reply: Reply) -> State:
    own = node_of(reply.receiver)
    return noted(state, own, network.taken(design, bounds, state.nodes[own], reply))


def _sent(state: State, message: Message) -> State:
    return state._replace(network=tuple(sorted((*state.network, message))))
