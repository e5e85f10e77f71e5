"""The properties with a time limit that hold even while faults strike: L4, L6, L7."""

from typing import TypeAlias

from kvorum.node.raft.inbound_requests import read_request
from kvorum.raft import ReplicaKey
from kvorum.raft import messages as core
from kvorum.raft.roles import Leader, Role
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.properties.catalogue import L4, L6, L7, Checks
from kvorum.simulation.properties.node_facts import NodeMemory
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from kvorum.wire.primitives import Message

# Clocks may be a tenth too slow, and a turn of a node takes some milliseconds.
_DRIFT = 1.12
_TURN_MS = 100.0
_TURNS_AT_ONCE_MAX = 1_000
_WAITS_FOR_ANOTHER = "waiting for leader to handle previous voter change request"
"""A part of the text with which a leader refuses a change because of another one."""
_Place: TypeAlias = tuple[int, int, int]
_ProcessId: TypeAlias = tuple[int, int]
"""A node and its number of starts."""


class Timeliness:
    """The times of each node's fetches, turns and requests to change voters."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        # By leader, process and epoch: the last fetch of each voter, and the begin of leadership.
        self._fetches: dict[_Place, dict[int, float]] = {}
        self._fetches_of: dict[_Place, dict[ReplicaKey, float]] = {}
        self._leading_since: dict[_Place, float] = {}
        self._voters: dict[_Place, VoterSet] = {}
        self._changes: dict[int, tuple[int, float, str]] = {}
        # The changes that an operator has asked a process for, and whether none was before them.
        self._under_way: dict[_ProcessId, set[int]] = {}
        self._is_first: dict[int, bool] = {}
        self._turns: dict[int, tuple[float, int]] = {}

    def request_arrives(self, memory: NodeMemory, request: Message, now_ms: float) -> None:
        """Note a fetch of a voter, or a request to change voters."""
        node_id = memory.node.node_id
        if isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest):
            self._changes[id(request)] = (node_id, now_ms, type(request).__name__)
            self._change_arrives(memory, request)
        elif isinstance(request, FetchRequest | FetchSnapshotRequest | UpdateRaftVoterRequest):
            asked = read_request(request, cluster_id=memory.node.settings.cluster_id)
            replica = None
            if isinstance(asked, core.FetchRequest | core.FetchSnapshotRequest):
                replica = asked.replica
            elif isinstance(asked, core.UpdateRaftVoterRequest):
                # A voter that reports itself counts as heard, as in a real quorum.
                replica = asked.voter
            if replica is not None and memory.node.core is not None:
                place = (node_id, memory.node.start_count, memory.node.core.role.epoch)
                self._fetches.setdefault(place, {})[replica.id] = now_ms
                self._fetches_of.setdefault(place, {})[replica] = now_ms

    def _change_arrives(self, memory: NodeMemory, request: Message) -> None:
        """Note whether an operator's earlier change is under way in the process."""
        node = memory.node
        under_way = self._under_way.setdefault((node.node_id, node.start_count), set())
        are_committed = node.core is not None and node.core.are_voters_committed
        self._is_first[id(request)] = are_committed and not under_way
        under_way.add(id(request))

    def has_fetched(self, memory: NodeMemory, key: ReplicaKey, now_ms: float) -> bool:
        """Return whether a replica has fetched from a leader within a fetch timeout."""
        node = memory.node
        assert node.core is not None
        place = (node.node_id, node.start_count, node.core.role.epoch)
        limit_ms = node.settings.raft.fetch_timeout_ms * _DRIFT + _TURN_MS
        return now_ms - self._fetches_of.get(place, {}).get(key, -1e9) <= limit_ms

    def response_leaves(
        self, memory: NodeMemory, request: Message, response: Message, now_ms: float
    ) -> None:
        """Demand that a request to change voters is answered in time: L7."""
        if isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
            self._check_refusal(memory, request, response)
        asked = self._changes.pop(id(request), None)
        if asked is None:
            return
        _, asked_ms, name = asked
        waited_ms = now_ms - asked_ms
        limit_ms = 2 * memory.node.settings.raft.request_timeout_ms * _DRIFT + _TURN_MS
        text = f"{memory.name} has taken {waited_ms:.0f} ms over a {name}"
        self._checks.demand(L7, text, holds=waited_ms <= limit_ms)

    def _check_refusal(
        self,
        memory: NodeMemory,
        request: Message,
        response: AddRaftVoterResponse | RemoveRaftVoterResponse,
    ) -> None:
        """Demand that an operator's change is refused for an operator's change alone: L7.

        A voter's update that is not recorded yet has to give way.
        """
        node = memory.node
        self._under_way.get((node.node_id, node.start_count), set()).discard(id(request))
        is_first = self._is_first.pop(id(request), False)
        is_refused = _WAITS_FOR_ANOTHER in (response.error_message or "")
        text = f"{memory.name} refuses a {type(request).__name__} because of a voter's update"
        self._checks.demand(L7, text, holds=not (is_first and is_refused))

    def node_is_back(self, memory: NodeMemory, now_ms: float) -> None:
        """Begin to measure again for a node that was paused and could do nothing meanwhile."""
        for place in [place for place in self._leading_since if place[0] == memory.node.node_id]:
            self._leading_since[place] = now_ms

    def node_is_gone(self, memory: NodeMemory) -> None:
        """Expect no timely answers from a process that has ended or is paused."""
        node_id = memory.node.node_id
        self._changes = {key: asked for key, asked in self._changes.items() if asked[0] != node_id}

    def check(self, memory: NodeMemory, role: Role, now_ms: float) -> None:
        """Check a node after one of its turns."""
        node_id = memory.node.node_id
        at_ms, count = self._turns.get(node_id, (now_ms, 0))
        count = count + 1 if at_ms == now_ms else 0
        self._turns[node_id] = (now_ms, count)
        text = f"{memory.name} takes turn after turn at {now_ms:.3f}"
        self._checks.demand(L6, text, holds=count <= _TURNS_AT_ONCE_MAX)
        if isinstance(role, Leader):
            self._check_leader(memory, role, now_ms)

    def _check_leader(self, memory: NodeMemory, role: Leader, now_ms: float) -> None:
        """Demand recent fetches of a majority, which includes a leader that is a voter: L4."""
        node = memory.node
        if node.core is None:
            return
        place = (node.node_id, node.start_count, role.epoch)
        voters = node.core.history.voters
        if self._voters.get(place) != voters:
            # The time begins again with another voter set.
            self._voters[place], self._leading_since[place] = voters, now_ms
        since = self._leading_since.setdefault(place, now_ms)
        limit_ms = 1.5 * node.settings.raft.fetch_timeout_ms * _DRIFT + _TURN_MS
        if voters.majority > 2:
            # The time begins again when enough voters have fetched; the first of them may have
            # fetched at the beginning of the period before.
            limit_ms *= 2
        if now_ms - since <= limit_ms:
            return
        fetches = self._fetches.get(place, {})
        heard = [
            voter.key.id
            for voter in voters.voters
            if voter.is_replica(memory.key) or now_ms - fetches.get(voter.key.id, -1e9) <= limit_ms
        ]
        text = f"{memory.name} leads {voters.ids} and has heard of {heard} only"
        self._checks.demand(L4, text, holds=len(heard) >= voters.majority)
