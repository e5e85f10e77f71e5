"""Clusters inside a test's own process.

::

    with Cluster(controllers=3, brokers=1) as cluster:   # or: async with AsyncCluster(...)
        cluster.bootstrap_servers
        cluster.create_topic("orders", 3)
        cluster.kill(cluster.leader_id)
        cluster.wait_for_leader()
        cluster.partition({1}, {2, 3})
        cluster.heal()
        cluster.pause(2)
        cluster.resume(2)
"""

from kvorum.node.embedded.pausable_loop import PausableEventLoop
from kvorum.testing.cluster import AsyncCluster, Cluster, ClusterFactory

__all__ = ["AsyncCluster", "Cluster", "ClusterFactory", "PausableEventLoop"]
