"""The live status below ``kvorum dev``, where it runs in a terminal."""

from __future__ import annotations

import asyncio
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kvorum.node.process import Node

INTERVAL_SECONDS = 0.5


async def show_status(node: Node) -> None:
    """Show how the cluster is, twice a second, until cancelled."""
    started = time.monotonic()
    with Live(console=Console(), auto_refresh=False, transient=True) as live:
        while True:
            live.update(status_line(node, uptime_seconds=time.monotonic() - started), refresh=True)
            await asyncio.sleep(INTERVAL_SECONDS)


def status_line(node: Node, *, uptime_seconds: float) -> Text:
    """Return one line about the cluster."""
    core = node.core
    image = core.loader.published
    partitions = sum(len(topic.partitions) for topic in image.topics.by_id.values())
    minutes, seconds = divmod(int(uptime_seconds), 60)
    leader = "none" if core.raft.leader_id is None else str(core.raft.leader_id)
    return Text(
        f"up {minutes}:{seconds:02}   leader {leader}, epoch {core.raft.epoch}   "
        f"log end {core.raft.log_end_offset}   topics {len(image.topics.by_id)}, "
        f"partitions {partitions}   connections {core.limits.total}",
        style="dim",
    )
