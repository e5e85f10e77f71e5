"""Scripts about what one request may write: 10,000 records, written by hand."""

from collections.abc import Sequence
from typing import Final

from tests.interop.differential.bodies import TIMEOUT_MS, Fields, heartbeat, started
from tests.interop.differential.script import Script, Step

MOST: Final = 10_000


def _topic(name: str, partitions: int) -> Fields:
    return {"name": name, "numPartitions": partitions, "replicationFactor": 1}


def _create(*topics: Fields) -> Step:
    return Step("CreateTopics", 7, {"topics": list(topics), "timeoutMs": TIMEOUT_MS})


def _add(*counts: tuple[str, int]) -> Step:
    rows = [{"name": name, "count": count, "assignments": None} for name, count in counts]
    return Step("CreatePartitions", 3, {"topics": rows, "timeoutMs": TIMEOUT_MS})


def crowded_requests() -> Script:
    """Return a script of requests that would write too much."""
    return _script(
        "crowded-requests",
        _create(_topic("a", MOST + 1)),
        _create(_topic("a", MOST // 2), _topic("b", MOST // 2 + 1)),
        # Not too many partitions, but with the topic's own record too many records.
        _create(_topic("a", MOST)),
        _create(_topic("small", 3), _topic("b", MOST - 3)),
    )


def crowded_broker() -> Script:
    """Return a script in which each change of one broker touches more than may be written."""
    return _script(
        "crowded-broker",
        _create(_topic("a", MOST - 1)),
        _create(_topic("b", 1)),
        _add(("b", 4)),
        Step("UnregisterBroker", 0, {"brokerId": 1}),
        Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
        Step("BrokerHeartbeat", 2, heartbeat(1)),
        Step("ElectLeaders", 2, {"electionType": 0, "timeoutMs": TIMEOUT_MS}),
        Step("AlterPartitionReassignments", 1, {"timeoutMs": TIMEOUT_MS, "topics": _moves()}),
    )


def _moves() -> Sequence[Fields]:
    return [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": index, "replicas": [1, 2]} for index in range(partitions)
            ],
        }
        for name, partitions in (("a", MOST - 1), ("b", 4))
    ]


def _script(kind: str, *steps: Step) -> Script:
    return Script(kind, 0, (*started(1), *steps))
