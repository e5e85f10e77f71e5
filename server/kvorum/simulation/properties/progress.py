"""The progress of each replica of a healed quorum, and the time of its last advance.

A slow replica is not a stuck one: how long it may take depends on what it has to fetch and in which
pieces. So a replica is late only if it has not advanced for a while. Three things count as an
advance: a higher high watermark, a longer copy of the leader's log, and a byte of a snapshot behind
all bytes fetched before. When a download begins again, bytes at the same positions do not count,
whichever snapshot they belong to, until the log itself has advanced. So progress comes to an end:
nothing after the target counts, and a download that always begins again soon reaches no position
that is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvorum.raft.roles import Follower, Leader
from kvorum.raft.roles.follower import Download
from kvorum.simulation.properties.node_facts import ObservedNode

DOWNLOADS_MAX = 20
"""The number of downloads that may begin without an advance of the log: leaders may drop snapshots
meanwhile, and leaders may change, but so many downloads lead nowhere."""


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
