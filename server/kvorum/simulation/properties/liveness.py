"""The properties that hold once faults have stopped and a majority is up: L1, L2, L3, L5, L8, L9.

A replica that is behind is judged by whether it advances, never by when it has caught up: that
depends on how much there is to fetch and on the configured sizes. Three things do not depend on
these and have a time limit: to elect a leader, to find it, and to go on writing.

So a replica is late only if it has not advanced for a while. Three things count as an advance: a
higher high watermark, a longer copy of the leader's log, and a byte of a snapshot after all bytes
fetched before. When a download begins again, bytes at the same positions do not count, whichever
snapshot they belong to, until the log itself has advanced. So progress comes to an end: nothing
after the target counts, and a download that always begins again soon reaches no new position.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvorum.raft.roles import Download, Follower, Leader
from kvorum.simulation.properties.callbacks import Ledger
from kvorum.simulation.properties.catalogue import L1, L2, L3, L5, L8, Checks
from kvorum.simulation.properties.elections import Elections
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.properties.reassignments import Reassignments
from kvorum.simulation.properties.shared_log import SharedLog

DOWNLOADS_MAX = 20
"""The number of downloads that may begin without an advance of the log: leaders may drop snapshots
meanwhile, and leaders may change, but so many downloads lead nowhere."""
ELECTION_TIMEOUTS_MAX = 10
EPOCHS_MAX = 20
IDLE_MS_MAX = 7_000.0
"""For how long a replica that is behind may make no progress, or know no leader: longer than the
longest fetch timeout and the requests that were under way when the faults stopped."""
CALM_MS_MIN = 6_000.0
"""The calm after which writes must have gone on: a client waits up to 4 s for an answer that was
lost before, and then a second before it writes again."""
_ANY_END = 2**63 - 1
"""The target as long as no leader knows what is committed."""


@dataclass(slots=True)
class _Reached:
    """The furthest state of one replica, and when it was reached."""

    advanced_at_ms: float
    led_at_ms: float
    high_watermark: int = -1
    copied_end: int = -1
    download_bytes: int = 0
    """The furthest byte of any download since the log last advanced."""
    download_count: int = 0
    """The number of downloads that have begun since then."""
    download: Download | None = None


class Progress:
    """The progress of all replicas towards a target, an offset of the log."""

    def __init__(self) -> None:
        self._reached: dict[int, _Reached] = {}
        self._target_end = 0

    def begin(self, now_ms: float, nodes: Sequence[ObservedNode], *, target_end: int) -> None:
        """Begin again for another target: every replica has its whole time again."""
        self._reached.clear()
        self._target_end = target_end
        self.look(now_ms, nodes)

    def look(self, now_ms: float, nodes: Sequence[ObservedNode]) -> None:
        """Note what each node has reached by now."""
        for node in nodes:
            reached = self._reached.get(node.node_id)
            if reached is None:
                reached = self._reached[node.node_id] = _Reached(now_ms, now_ms)
            _look_at(reached, node, now_ms, target_end=self._target_end)

    def idle_ms(self, node: ObservedNode, now_ms: float) -> float:
        """Return for how long a node has not advanced."""
        return now_ms - self._of(node, now_ms).advanced_at_ms

    def leaderless_ms(self, node: ObservedNode, now_ms: float) -> float:
        """Return for how long a node has known no leader."""
        return now_ms - self._of(node, now_ms).led_at_ms

    def is_circling(self, node: ObservedNode) -> bool:
        """Return whether a node begins download after download while its log does not advance."""
        return self._of(node, 0.0).download_count > DOWNLOADS_MAX

    def describe(self, node: ObservedNode) -> str:
        """Return a short text of a node's progress."""
        reached = self._of(node, 0.0)
        return (
            f"{node.node_id} is at {reached.copied_end}, with {reached.download_count} downloads "
            f"of up to {reached.download_bytes} bytes since"
        )

    def _of(self, node: ObservedNode, now_ms: float) -> _Reached:
        return self._reached.get(node.node_id) or _Reached(now_ms, now_ms)


def _look_at(reached: _Reached, node: ObservedNode, now_ms: float, *, target_end: int) -> None:
    core = node.core
    if core is None:
        return
    role = core.role
    if isinstance(role, Leader | Follower):
        reached.led_at_ms = now_ms
    # A leader's own appends are no progress of the quorum.
    copied_end = min(core.log.end_offset, target_end) if isinstance(role, Follower) else -1
    high_watermark = -1 if core.high_watermark is None else min(core.high_watermark, target_end)
    if high_watermark > reached.high_watermark or copied_end > reached.copied_end:
        reached.high_watermark = max(high_watermark, reached.high_watermark)
        reached.copied_end = max(copied_end, reached.copied_end)
        reached.download_bytes = reached.download_count = 0
        reached.advanced_at_ms = now_ms
    _look_at_download(reached, role.download if isinstance(role, Follower) else None, now_ms)


def _look_at_download(reached: _Reached, download: Download | None, now_ms: float) -> None:
    if download is None:
        return
    if download is not reached.download:
        reached.download = download
        reached.download_count += 1
    if download.position > reached.download_bytes:
        reached.download_bytes = download.position
        reached.advanced_at_ms = now_ms


class Liveness:
    """The checks of a healed quorum: a leader, replicas that catch up, writes, no new election."""

    def __init__(
        self,
        checks: Checks,
        *,
        elections: Elections,
        shared: SharedLog,
        ledger: Ledger,
        reassignments: Reassignments,
    ) -> None:
        self._checks = checks
        self._elections = elections
        self._shared = shared
        self._ledger = ledger
        self._reassignments = reassignments
        self._began_ms: float | None = None
        self._first_epoch = 0
        self._led_ms: float | None = None
        self._calm_ms: float | None = None
        self._calm_epoch = 0
        self._calm_end = 0
        self._hand_over_count = 0
        self._handed_over_ms: float | None = None
        # The offset that every replica must reach: the committed end when there was a leader again.
        self._target_end = 0
        self._calm_writes = 0
        self._progress = Progress()

    def begin(self, now_ms: float, nodes: Sequence[ObservedNode]) -> None:
        """Note that faults have stopped."""
        self._began_ms = now_ms
        self._progress.begin(now_ms, nodes, target_end=_ANY_END)
        self._first_epoch = max((_epoch(node) for node in nodes), default=0)

    def look(self, now_ms: float, nodes: Sequence[ObservedNode]) -> None:
        """Check all live nodes; to be called about every tenth of a second."""
        if self._began_ms is None:
            return
        self._progress.look(now_ms, nodes)
        leader = _leader(nodes)
        nodes = _without_strays(nodes, leader)
        if self._led_ms is None:
            self._await_leader(now_ms, self._began_ms, nodes, leader)
        elif self._calm_ms is None:
            self._await_calm(now_ms, self._began_ms, nodes, leader)
        else:
            self._check_calm(now_ms, nodes, leader)

    def _await_leader(
        self,
        now_ms: float,
        began_ms: float,
        nodes: Sequence[ObservedNode],
        leader: ObservedNode | None,
    ) -> None:
        limit_ms = _election_ms(nodes)
        if leader is None:
            waited_ms = now_ms - began_ms
            claiming = [node for node in nodes if _leads(node)]
            if claiming:
                # A leader knows what is committed once a majority has reached its epoch's start,
                # which may take long.
                self._check_epochs(max(map(_epoch, claiming)))
                waited_ms = min(self._progress.idle_ms(node, now_ms) for node in nodes)
            text = f"no leader for {waited_ms:.0f} ms after the last fault: {_states(nodes)}"
            self._checks.demand(L1, text, holds=waited_ms <= limit_ms)
            return
        self._check_epochs(_epoch(leader))
        self._led_ms = now_ms
        self._target_end = self._shared.committed_end
        self._progress.begin(now_ms, nodes, target_end=self._target_end)

    def _check_epochs(self, epoch: int) -> None:
        used = epoch - self._first_epoch
        self._checks.demand(L1, f"it took {used} epochs", holds=used <= EPOCHS_MAX)

    def _await_calm(
        self,
        now_ms: float,
        began_ms: float,
        nodes: Sequence[ObservedNode],
        leader: ObservedNode | None,
    ) -> None:
        late = [node for node in nodes if not _follows(node, leader, self._target_end)]
        if late:
            self._check_late(now_ms, late, end=self._target_end)
            return
        raft = nodes[0].settings.raft
        if now_ms - began_ms <= 1.5 * (raft.fetch_timeout_ms + raft.request_timeout_ms):
            # Messages lost before the faults stopped may still cost the leader its majority.
            return
        self._checks.held(L2, L8)
        self._calm_ms = now_ms
        self._calm_epoch = 0 if leader is None else _epoch(leader)
        self._calm_end = self._shared.committed_end
        self._calm_writes = self._ledger.acknowledged_count
        self._progress.begin(now_ms, nodes, target_end=self._calm_end)
        self._hand_over_count = self._reassignments.hand_over_count
        self._reassignments.begin_calm(now_ms)

    def _check_late(self, now_ms: float, late: Sequence[ObservedNode], *, end: int) -> None:
        """Demand that each replica that is behind advances, and knows a leader."""
        progress = self._progress
        lost = [node for node in late if progress.leaderless_ms(node, now_ms) > IDLE_MS_MAX]
        self._checks.demand(
            L8, f"no leader for {IDLE_MS_MAX:.0f} ms: {_states(lost)}", holds=not lost
        )
        stuck = [node for node in late if progress.idle_ms(node, now_ms) > IDLE_MS_MAX]
        text = f"no further for {IDLE_MS_MAX:.0f} ms: {_states(stuck)}, end {end}"
        self._checks.demand(L2, text, holds=not stuck)
        circling = [node for node in late if progress.is_circling(node)]
        text = f"{'; '.join(map(progress.describe, circling))}, end {end}"
        self._checks.demand(L2, text, holds=not circling)

    def _check_calm(
        self, now_ms: float, nodes: Sequence[ObservedNode], leader: ObservedNode | None
    ) -> None:
        self._reassignments.look(now_ms, nodes, leader)
        if self._reassignments.hand_over_count > self._hand_over_count:
            # The leader is not a target voter, and has handed over.
            self._hand_over_count = self._reassignments.hand_over_count
            self._handed_over_ms = now_ms
        if self._handed_over_ms is not None:
            if leader is None or _epoch(leader) == self._calm_epoch:
                text = f"nobody leads since the leader handed over: {_states(nodes)}"
                waited_ms = now_ms - self._handed_over_ms
                self._checks.demand(L1, text, holds=waited_ms <= _election_ms(nodes))
                return
            self._handed_over_ms = None
            self._calm_epoch = _epoch(leader)
        text = f"the leader of {self._calm_epoch} was replaced, though it had its majority: "
        text += "nobody leads" if leader is None else f"epoch {_epoch(leader)}"
        is_same = leader is not None and _epoch(leader) == self._calm_epoch
        self._checks.demand(L5, text, holds=is_same)

    def end(self, now_ms: float, nodes: Sequence[ObservedNode]) -> None:
        """Demand that there was calm, and that writes went on in it."""
        nodes = _without_strays(nodes, _leader(nodes))
        if self._calm_ms is None:
            self._checks.demand(
                L1, f"nobody leads: {_states(nodes)}", holds=self._led_ms is not None
            )
            # Each replica that is late still advances, which every look has demanded.
            return
        if now_ms - self._calm_ms >= CALM_MS_MIN:
            text = f"nothing was committed behind {self._calm_end}"
            self._checks.demand(L3, text, holds=self._shared.committed_end > self._calm_end)
            text = f"no write was acknowledged after the first {self._calm_writes}"
            self._checks.demand(L3, text, holds=self._ledger.acknowledged_count > self._calm_writes)
        late = [node for node in nodes if _high_watermark(node) < self._calm_end]
        if late:
            self._check_late(now_ms, late, end=self._calm_end)
        self._checks.demand(
            L8, f"without a leader: {_states(nodes)}", holds=all(map(_has_leader, nodes))
        )


def _election_ms(nodes: Sequence[ObservedNode]) -> float:
    """Return how long it may take until a leader is there."""
    settings = nodes[0].settings.raft
    # A fetch timeout may have to pass before any node knows that the leader is gone.
    return ELECTION_TIMEOUTS_MAX * settings.election_timeout_ms + settings.fetch_timeout_ms


def _leads(node: ObservedNode) -> bool:
    return node.core is not None and isinstance(node.core.role, Leader)


def _leader(nodes: Sequence[ObservedNode]) -> ObservedNode | None:
    """Return the leader of the highest epoch that knows what is committed."""
    leading = [
        node
        for node in nodes
        if node.core is not None
        and isinstance(node.core.role, Leader)
        and node.core.high_watermark is not None
    ]
    return max(leading, key=_epoch, default=None)


def _epoch(node: ObservedNode) -> int:
    return -1 if node.core is None else node.core.role.epoch


def _high_watermark(node: ObservedNode) -> int:
    return -1 if node.core is None else node.core.high_watermark or 0


def _has_leader(node: ObservedNode) -> bool:
    return node.core is not None and isinstance(node.core.role, Leader | Follower)


def _follows(node: ObservedNode, leader: ObservedNode | None, end: int) -> bool:
    if leader is None or node.core is None:
        return False
    is_behind_it = node is leader or (
        isinstance(node.core.role, Follower) and node.core.role.leader_id == leader.node_id
    )
    return is_behind_it and _high_watermark(node) >= end


def _without_strays(
    nodes: Sequence[ObservedNode], leader: ObservedNode | None
) -> Sequence[ObservedNode]:
    """Return the nodes that can follow the leader.

    A former voter that does not know of its removal calls elections. Where the voters it knows are
    too old for pre-votes, its epochs pass the leader's, whose voters never hear of them: it can
    follow only when their elections have come as far.
    """
    if leader is None or leader.core is None:
        return nodes
    voters = leader.core.history.voters
    return [node for node in nodes if voters.by_id(node.node_id) or not _strays(node, leader)]


def _strays(node: ObservedNode, leader: ObservedNode) -> bool:
    """Return whether a node is in an epoch after the leader's in which it voted for itself."""
    if node.core is None or _epoch(node) <= _epoch(leader):
        return False
    voted = node.core.role.voted
    return voted is not None and voted.id == node.node_id


def _states(nodes: Sequence[ObservedNode]) -> str:
    states = [
        f"{node.node_id}: stopped"
        if node.core is None
        else f"{node.node_id}: {node.core.role.name.value} in {node.core.role.epoch}, "
        f"leader {node.core.role.leader_id}, high watermark {node.core.high_watermark}"
        for node in nodes
    ]
    return "; ".join(states)
