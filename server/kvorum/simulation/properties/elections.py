"""Leaders, votes and epochs: P1, P2, P3, P16, P18, P28, P29."""

from kvorum.raft import ReplicaKey
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles import Leader, Role, RoleName
from kvorum.simulation.properties.catalogue import P1, P2, P3, P16, P18, P28, P29, Checks
from kvorum.simulation.properties.node_facts import NodeMemory

_CAMPAIGNING = frozenset({RoleName.PROSPECTIVE, RoleName.CANDIDATE})
_OBSERVING = frozenset({RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.RESIGNED})
# The roles that each role can have become by the end of one event, within one epoch. A candidate is
# always in an epoch of its own, so no other role becomes a candidate there.
_LATER_IN_EPOCH = {
    RoleName.UNATTACHED: {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE},
    RoleName.PROSPECTIVE: {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE},
    RoleName.FOLLOWER: {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE},
    RoleName.CANDIDATE: {
        *(RoleName.CANDIDATE, RoleName.LEADER, RoleName.RESIGNED),
        *(RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.UNATTACHED),
    },
    RoleName.LEADER: {RoleName.LEADER, RoleName.RESIGNED},
    RoleName.RESIGNED: {
        *(RoleName.RESIGNED, RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.UNATTACHED)
    },
}


class Elections:
    """The leaders and the votes of all epochs."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._leaders: dict[int, tuple[int, bytes, int]] = {}
        self._known_leaders: dict[int, int] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        # The votes of every epoch, by voter; also those of voters whose disks are lost since.
        self._given: dict[int, dict[ReplicaKey, ReplicaKey]] = {}

    @property
    def latest_epoch(self) -> int:
        """The highest epoch that had a leader; 0 for none."""
        return max(self._leaders, default=0)

    def check_role(self, memory: NodeMemory, role: Role, *, may_stand: bool) -> None:
        """Check a new role; `may_stand` is whether the node's log lets it stand for election."""
        self._check_campaign(memory, role, may_stand=may_stand)
        if isinstance(role, Leader):
            self._check_majority(memory, role)
        if memory.role is not None and memory.role is not role:
            self._check_move(memory, memory.role, role, may_stand=may_stand)

    def check_leader(self, memory: NodeMemory, role: Role) -> None:
        """Check the leader that a node knows of: P1.

        A leader counts from the moment at which its own record is stored; no other node has heard
        of it before.
        """
        if memory.leader_role is role:
            return
        node = memory.node
        if role.leader_id == node.node_id:
            stored = memory.read_election()
            if (stored.epoch, stored.leader_id) != (role.epoch, node.node_id):
                return
        memory.leader_role = role
        if role.name is RoleName.LEADER:
            mine = (node.node_id, node.directory_id, node.start_count)
            leader = self._leaders.setdefault(role.epoch, mine)
            text = f"epoch {role.epoch} is led by {mine} and by {leader}"
            self._checks.demand(P1, text, holds=leader == mine)
        if role.leader_id is not None:
            known = self._known_leaders.setdefault(role.epoch, role.leader_id)
            text = (
                f"{memory.name} takes {role.leader_id} for the leader of {role.epoch}, not {known}"
            )
            self._checks.demand(P1, text, holds=known == role.leader_id)

    def _check_majority(self, memory: NodeMemory, role: Leader) -> None:
        """Demand votes of a majority for a new leader, of the voters in its log before: P29.

        A voter that the log names with its directory has voted only if that directory has.
        """
        core = memory.node.core
        if core is None:
            return
        voters = core.history.voters_at(role.epoch_start_offset)
        given = self._given.get(role.epoch, {})
        for_it = {key for key, candidate in given.items() if _same(candidate, memory.key)}
        for_it.add(memory.key)
        granting = [one.key for one in voters.voters if any(map(one.is_replica, for_it))]
        text = f"{memory.name} leads {role.epoch} by the votes of {granting} of {voters.ids}"
        self._checks.demand(P29, text, holds=len(granting) >= voters.majority)

    def _check_campaign(self, memory: NodeMemory, role: Role, *, may_stand: bool) -> None:
        if role.name not in _CAMPAIGNING or memory.node.core is None:
            return
        voters = memory.node.core.history.voters
        text = f"{memory.name} is {role.name.value} and none of {voters.ids}"
        self._checks.demand(P16, text, holds=may_stand)

    def _check_move(self, memory: NodeMemory, old: Role, new: Role, *, may_stand: bool) -> None:
        """Check a move between roles, or several moves in one event."""
        text = (
            f"{memory.name} went from {old.name.value} ({old.epoch}, leader {old.leader_id}, "
            f"voted {old.voted}) to {new.name.value} ({new.epoch}, leader {new.leader_id}, "
            f"voted {new.voted})"
        )
        if new.epoch == old.epoch:
            keeps_leader = old.leader_id is None or new.leader_id == old.leader_id
            is_led_by_itself = new.leader_id == memory.node.node_id
            keeps_vote = old.voted is None or old.voted == new.voted or is_led_by_itself
            is_legal = new.name in _LATER_IN_EPOCH[old.name] and keeps_leader and keeps_vote
        else:
            is_legal = new.epoch > old.epoch
        if not may_stand and new.name is not RoleName.LEADER:
            is_legal = is_legal and (new.name in _OBSERVING or old.name is new.name)
        self._checks.demand(P18, text, holds=is_legal)

    def check_stored(self, memory: NodeMemory) -> None:
        """Demand that the stored epoch does not fall: P3."""
        before = memory.election
        stored = memory.read_election()
        if stored is before:
            return
        text = f"{memory.name} stored epoch {stored.epoch} after {before.epoch}"
        self._checks.demand(P3, text, holds=stored.epoch >= before.epoch)
        is_kept = (
            stored.epoch > before.epoch
            or before.voted is None
            or _same(stored.voted, before.voted)
            or stored.leader_id is not None
        )
        text = f"{memory.name} stored a vote for {stored.voted} after {before.voted}"
        self._checks.demand(P2, text, holds=is_kept)

    def check_known_epoch(self, memory: NodeMemory, epoch: int) -> None:
        """Demand that an epoch named in a message is stored: P3."""
        stored = memory.read_election().epoch
        text = f"{memory.name} names epoch {epoch} and has stored {stored}"
        self._checks.demand(P3, text, holds=epoch <= stored)

    def check_vote(self, memory: NodeMemory, request: VoteRequest, candidate: ReplicaKey) -> None:
        """Demand that a vote for `candidate` which leaves a node is stored, and the only one: P2.

        A node that asks for votes gives its own to itself.
        """
        if request.is_pre_vote:
            return
        epoch, stored = request.epoch, memory.read_election()
        # The candidate's leadership, once it is stored, implies the vote.
        names_it = _same(stored.voted, candidate) or stored.leader_id == candidate.id
        is_stored = stored.epoch > epoch or (stored.epoch == epoch and names_it)
        text = f"{memory.name} votes for {candidate} in {epoch} and has stored {stored}"
        self._checks.demand(P2, text, holds=is_stored)
        first = self._votes.setdefault((memory.key, epoch), candidate)
        text = f"{memory.name} votes for {candidate} and for {first} in {epoch}"
        self._checks.demand(P2, text, holds=_same(first, candidate))
        self.vote_given(memory.key, epoch=epoch, candidate=candidate)

    def vote_given(self, voter: ReplicaKey, *, epoch: int, candidate: ReplicaKey) -> None:
        """Note a replica's vote."""
        self._given.setdefault(epoch, {})[voter] = candidate

    def check_pre_vote(
        self, memory: NodeMemory, request: VoteRequest, before: ElectionRecord
    ) -> None:
        """Demand that a pre-vote has not changed epoch and vote: P28."""
        if not request.is_pre_vote or request.epoch > before.epoch:
            return
        core = memory.node.core
        after = None if core is None else core.role.election_record
        text = f"a pre-vote made {after} of {before} on {memory.name}"
        self._checks.demand(P28, text, holds=after is None or after.voted == before.voted)

    def forget_directory(self, key: ReplicaKey) -> None:
        """Forget the votes of a directory that has lost its files and keeps its id."""
        for known in [known for known in self._votes if known[0] == key]:
            del self._votes[known]


def _same(one: ReplicaKey | None, other: ReplicaKey | None) -> bool:
    """Return whether two keys may be one replica; kraft.version 0 stores no directory ids."""
    if one is None or other is None:
        return one is other
    return one.id == other.id and (
        None in {one.directory_id, other.directory_id} or one.directory_id == other.directory_id
    )
