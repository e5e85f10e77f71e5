"""A leading controller, and the turns that its loop gets."""

from __future__ import annotations

from tests.node.raft.cluster import Lab, Replica
from tests.node.raft.controller_shells import shell_over

from kvorum.node.controller.quorum_controller import QuorumController

TURNS = 20


async def leading(lab: Lab) -> tuple[Replica, QuorumController]:
    replica = await lab.voter()
    await replica.start()
    await replica.until_leading()
    shell = shell_over(replica.node)
    shell.lead(replica.node.epoch)
    return replica, shell
