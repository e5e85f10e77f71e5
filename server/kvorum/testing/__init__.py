"""Clusters inside a test's own process.

::

    with Cluster() as cluster:              # or: async with AsyncCluster() as cluster
        cluster.bootstrap_servers
"""

from kvorum.testing.async_cluster import AsyncCluster
from kvorum.testing.cluster import Cluster

__all__ = ["AsyncCluster", "Cluster"]
