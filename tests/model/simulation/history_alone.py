"""A world with a mistake, judged by the history of its clients alone.

The other properties would end the world before its clients have seen what the mistake does.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import pytest

from kvorum.client_histories.anomalies import Anomaly, Legality
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.partitions import history_check
from kvorum.simulation.partitions.cluster import Cluster
from kvorum.simulation.partitions.group_ledger import GroupLedger, OffsetLedger
from kvorum.simulation.partitions.ledger import PartitionLedger
from kvorum.simulation.partitions.request_watch import RequestWatch
from kvorum.simulation.partitions.transactions import TransactionLedger
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError
from kvorum.simulation.world import World

WATCHERS = (Checks, GroupLedger, OffsetLedger, PartitionLedger, RequestWatch, TransactionLedger)
OF_A_FINAL_READ = {Anomaly.LOST_WRITE, Anomaly.UNSEEN}


def judge_by_history_alone(patch: pytest.MonkeyPatch) -> None:
    """Let the other watchers of worlds overlook what they find."""
    for watcher in WATCHERS:
        for name, found in vars(watcher).items():
            if callable(found) and not name.startswith("__"):
                patch.setattr(watcher, name, _overlooking(found))


def _overlooking(check: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(check)
    def overlook(*arguments: Any, **named: Any) -> Any:
        with suppress(PropertyViolatedError):
            return check(*arguments, **named)

    return overlook


def anomalies_of_world(seed: int) -> set[Anomaly]:
    """Return the anomalies that are never legal in the history of a world.

    Without a last read by a world that ended in an error, nothing can be called missing.
    """
    world = World(seed, kind=WorldKind.BROKERS)
    excluded: set[Anomaly] = set()
    try:
        world.run()
    except Exception:  # noqa: BLE001 - a mistake may end a world in any way
        excluded = OF_A_FINAL_READ
    except PropertyViolatedError:
        excluded = OF_A_FINAL_READ
    cluster = world.inhabitants
    assert isinstance(cluster, Cluster)
    found = {
        kind.anomaly
        for history in cluster.histories()
        for kind in history_check.judge(history).counts
        if kind.legality is Legality.NEVER
    }
    return found - excluded
