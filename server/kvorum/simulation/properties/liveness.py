"""What must happen once faults have stopped and a majority is up: L1, L2, L3, L5, L8."""

from __future__ import annotations

from collections.abc import Sequence

from kvorum.raft.roles import Follower, Leader
from kvorum.simulation.properties.catalogue import L1, L2, L3, L5, L8
from kvorum.simulation.properties.checks import Checks
from kvorum.simulation.properties.clients import Ledger
from kvorum.simulation.properties.elections import Elections
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.properties.shared_log import SharedLog

ELECTION_TIMEOUTS_MAX = 10
EPOCHS_MAX = 20
CATCH_UP_MS = 5_000.0


class Liveness:
    """Follows a healed quorum: a leader, everyone behind it, progress, and no unrest."""

    def __init__(
        self, checks: Checks, *, elections: Elections, shared: SharedLog, ledger: Ledger
    ) -> None:
        self._checks = checks
        self._elections = elections
        self._shared = shared
        self._ledger = ledger
        self._began_ms: float | None = None
        self._first_epoch = 0
        self._led_ms: float | None = None
        self._calm_ms: float | None = None
        self._calm_epoch = 0
        self._calm_end = 0
        # What everybody has to catch up with: what was committed when there was a leader again.
        self._target_end = 0
        self._calm_writes = 0
        self._transfer_ms = 0.0

    def begin(
        self, now_ms: float, nodes: Sequence[ObservedNode], *, transfer_ms: float = 1_000.0
    ) -> None:
        """Note that faults have stopped; `transfer_ms` is how long a whole log takes to cross."""
        self._began_ms = now_ms
        self._transfer_ms = transfer_ms
        self._first_epoch = max((_epoch(node) for node in nodes), default=0)

    @property
    def is_calm(self) -> bool:
        """Whether there is a leader and everyone has caught up with it."""
        return self._calm_ms is not None

    @property
    def leader_epoch(self) -> int:
        """The epoch in which calm has come."""
        return self._calm_epoch

    def look(self, now_ms: float, nodes: Sequence[ObservedNode]) -> None:
        """Look at all live nodes; to be called every tenth of a second or so."""
        if self._began_ms is None:
            return
        leader = _leader(nodes)
        if self._led_ms is None:
            self._await_leader(now_ms, self._began_ms, nodes, leader)
        elif self._calm_ms is None:
            self._await_calm(now_ms, self._led_ms, self._began_ms, nodes, leader)
        else:
            self._check_calm(leader)

    def _await_leader(
        self,
        now_ms: float,
        began_ms: float,
        nodes: Sequence[ObservedNode],
        leader: ObservedNode | None,
    ) -> None:
        settings = nodes[0].settings.raft
        # A fetch timeout may have to pass before anyone knows that there is no leader.
        limit_ms = ELECTION_TIMEOUTS_MAX * settings.election_timeout_ms + settings.fetch_timeout_ms
        if leader is None:
            text = f"no leader {now_ms - began_ms:.0f} ms after the last fault: {_told(nodes)}"
            self._checks.demand(L1, text, holds=now_ms - began_ms <= limit_ms)
            return
        used = _epoch(leader) - self._first_epoch
        self._checks.demand(L1, f"it took {used} epochs", holds=used <= EPOCHS_MAX)
        self._led_ms = now_ms
        self._target_end = self._shared.committed_end

    def _await_calm(
        self,
        now_ms: float,
        led_ms: float,
        began_ms: float,
        nodes: Sequence[ObservedNode],
        leader: ObservedNode | None,
    ) -> None:
        end = self._target_end
        late = [node for node in nodes if not _follows(node, leader, end)]
        limit_ms = 2 * self._transfer_ms + CATCH_UP_MS
        if late:
            lost = [node for node in late if not _has_leader(node)]
            text = f"{now_ms - led_ms:.0f} ms after there was a leader: {_told(late)}, end {end}"
            if now_ms - led_ms > limit_ms:
                self._checks.demand(L8, text, holds=not lost)
                self._checks.demand(L2, text, holds=False)
            return
        raft = nodes[0].settings.raft
        if now_ms - began_ms <= 1.5 * (raft.fetch_timeout_ms + raft.request_timeout_ms):
            # What was lost before the faults stopped may still cost the leader its majority.
            return
        self._checks.held(L2, L8)
        self._calm_ms = now_ms
        self._calm_epoch = 0 if leader is None else _epoch(leader)
        self._calm_end = self._shared.committed_end
        self._calm_writes = self._ledger.acknowledged_count

    def _check_calm(self, leader: ObservedNode | None) -> None:
        text = f"the leader of {self._calm_epoch} was replaced, though it had its majority: "
        text += "nobody leads" if leader is None else f"epoch {_epoch(leader)}"
        is_same = leader is not None and _epoch(leader) == self._calm_epoch
        self._checks.demand(L5, text, holds=is_same)

    def expect_new_leader(self, now_ms: float) -> None:
        """Begin anew: the leader is about to be removed, stopped or asked to resign."""
        if self._began_ms is not None:
            self._began_ms, self._led_ms, self._calm_ms = now_ms, None, None

    def end(self, nodes: Sequence[ObservedNode]) -> None:
        """Demand that calm came, and that writes went on in it."""
        self._checks.demand(L2, f"calm never came: {_told(nodes)}", holds=self.is_calm)
        text = f"nothing was committed behind {self._calm_end}"
        self._checks.demand(L3, text, holds=self._shared.committed_end > self._calm_end)
        text = f"no write was acknowledged after the first {self._calm_writes}"
        self._checks.demand(L3, text, holds=self._ledger.acknowledged_count > self._calm_writes)
        end = max(self._calm_end, self._target_end)
        late = [node for node in nodes if _high_watermark(node) < end]
        self._checks.demand(L2, f"still behind {end}: {_told(late)}", holds=not late)
        self._checks.demand(
            L8, f"without a leader: {_told(nodes)}", holds=all(map(_has_leader, nodes))
        )

    def check_snapshots(self, *, made: int, expected: int) -> None:
        """Demand that snapshots were made while all was calm: L3."""
        text = f"{made} snapshots were made where {expected} were due"
        self._checks.demand(L3, text, holds=made >= expected)


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


def _told(nodes: Sequence[ObservedNode]) -> str:
    told = [
        f"{node.node_id}: stopped"
        if node.core is None
        else f"{node.node_id}: {node.core.role.name.value} in {node.core.role.epoch}, "
        f"leader {node.core.role.leader_id}, high watermark {node.core.high_watermark}"
        for node in nodes
    ]
    return "; ".join(told)
