"""The level of transaction.version that a cluster has finalized."""

import re

from tests.interop.broker_cluster import BrokerCluster
from tests.support.waiting import wait_for


def set_transaction_version(cluster: BrokerCluster, version: int) -> None:
    """Finalize a level of transaction.version, and wait until all brokers know it."""
    feature = f"transaction.version={version}"
    servers = ("--bootstrap-server", cluster.servers)
    for verb in ("upgrade", "downgrade"):
        done = cluster.tools.run("kafka-features", *servers, verb, "--feature", feature)
        if done.exit_code == 0:
            break
    for broker in cluster.brokers.values():
        bootstrap = ("--bootstrap-server", broker.address)

        def look(bootstrap: tuple[str, ...] = bootstrap) -> bool:
            shown = cluster.tools.run("kafka-features", *bootstrap, "describe").stdout
            found = re.search(r"transaction\.version.*FinalizedVersionLevel: (\d+)", shown)
            return found is not None and int(found[1]) == version

        wait_for(look, f"transaction.version is {version}", otherwise=lambda: done)
