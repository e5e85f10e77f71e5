"""Bodies of the requests that most scripts begin with."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from tests.interop.differential.script import Step
from tests.interop.differential.view import uuid_of

Fields: TypeAlias = dict[str, Any]
INFINITE: Final = 2**63 - 1
TIMEOUT_MS: Final = 60_000
FEATURES: Final[Mapping[str, tuple[int, int]]] = {
    "metadata.version": (7, 33),
    "kraft.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 2),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The features that a broker supports."""


def directory(broker: int, number: int = 0) -> str:
    """Return what stands for the id of a broker's n-th log directory."""
    return f"$dir:{broker}:{number}"


def features(ranges: Mapping[str, tuple[int, int]] = FEATURES) -> list[Fields]:
    """Return features as a registration lists them."""
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in ranges.items()
    ]


def registration(
    broker: int, *, incarnation: int = 1, directories: int = 1, rack: str | None = None
) -> Fields:
    """Return the body of a good registration."""
    return {
        "brokerId": broker,
        "clusterId": "$cluster",
        "incarnationId": uuid_of(9, broker, incarnation),
        "listeners": [
            {"name": "PLAINTEXT", "host": f"b{broker}", "port": 9092, "securityProtocol": 0}
        ],
        "features": features(),
        "rack": rack,
        "logDirs": [directory(broker, number) for number in range(directories)],
        "previousBrokerEpoch": -1,
    }


def heartbeat(broker: int, **fields: object) -> Fields:
    """Return the body of a heartbeat of a broker that has read everything."""
    return {
        "brokerId": broker,
        "brokerEpoch": f"$epoch:{broker}",
        "currentMetadataOffset": INFINITE,
        "cordonedLogDirs": [],
        **fields,
    }


def started(broker: int, **fields: Any) -> list[Step]:
    """Return the steps by which a broker comes into service."""
    return [
        Step("BrokerRegistration", 4, registration(broker, **fields)),
        Step("BrokerHeartbeat", 2, heartbeat(broker)),
    ]


def topic(name: str, assignments: Sequence[Sequence[int]], **fields: object) -> Fields:
    """Return a topic to create with these replicas."""
    rows = [
        {"partitionIndex": index, "brokerIds": list(replicas)}
        for index, replicas in enumerate(assignments)
    ]
    counts = {"numPartitions": -1, "replicationFactor": -1}
    return {"name": name, **counts, "assignments": rows, **fields}


def created(*topics: Fields, version: int = 7, validate_only: bool = False) -> Step:
    """Return the step that creates topics."""
    body = {"topics": list(topics), "timeoutMs": TIMEOUT_MS, "validateOnly": validate_only}
    return Step("CreateTopics", version, body)


def feature_level(name: str, level: int, *, upgrade_type: int) -> Step:
    """Return the step that finalizes a level; the type is 1 up, 2 down safely, 3 down unsafely."""
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": upgrade_type}
    return Step("UpdateFeatures", 2, {"timeoutMs": TIMEOUT_MS, "featureUpdates": [update]})
