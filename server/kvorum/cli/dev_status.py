"""The live status line of ``kvorum dev`` in a terminal."""

import asyncio
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kvorum.node.embedded.cluster import EmbeddedCluster

INTERVAL_SECONDS = 0.5


async def show_status(cluster: EmbeddedCluster) -> None:
    """Show the cluster's status twice a second, until cancelled."""
    started = time.monotonic()
    with Live(console=Console(), auto_refresh=False, transient=True) as live:
        while True:
            line = status_line(cluster, uptime_seconds=time.monotonic() - started)
            live.update(line, refresh=True)
            await asyncio.sleep(INTERVAL_SECONDS)


def status_line(cluster: EmbeddedCluster, *, uptime_seconds: float) -> Text:
    """Return one line about the cluster, from its leader or, without a leader, from any node."""
    nodes = cluster.nodes
    leader_id = cluster.leader_id
    shared = nodes[min(nodes) if leader_id is None else leader_id].node.shared_server
    image = shared.loader.published
    partitions = sum(len(topic.partitions) for topic in image.topics.by_id.values())
    servers = [embedded.node.shared_server for embedded in nodes.values()]
    connections = sum(server.connection_quotas.total for server in servers)
    controllers = sum(embedded.place.is_controller for embedded in nodes.values())
    minutes, seconds = divmod(int(uptime_seconds), 60)
    leader = "none" if leader_id is None else str(leader_id)
    return Text(
        f"up {minutes}:{seconds:02}   leader {leader} of {controllers}, "
        f"epoch {shared.raft.epoch}   "
        f"log end {shared.raft.log_end_offset}   topics {len(image.topics.by_id)}, "
        f"partitions {partitions}   connections {connections}",
        style="dim",
    )
