"""Scripts: requests as data, the same for both controllers; shown as JSON lines."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, cast

from tests.interop.differential.view import uuid_of

from kvorum.wire.apis import API_SPECS
from kvorum.wire.json_form import FieldFacts, element_class, fields_of
from kvorum.wire.primitives import Message, Struct
from kvorum.wire.uuid_text import uuid_from_text

# The edge of JSON: bodies of requests, nested as the schema nests them.
Body: TypeAlias = Mapping[str, Any]
API_KEYS: Mapping[str, int] = {spec.name: spec.key for spec in API_SPECS.values()}


@dataclass(frozen=True, slots=True)
class Step:
    """One request, the same for both sides.

    `body` has Kafka's JSON field names. What it leaves out is at its default, and what `version`
    cannot carry is left out of the request, so that one body serves all versions. Strings that
    begin with "$" are looked up on each side (see `view`). With `is_placed` the controller
    chooses replicas by chance: of those only what is determined is compared. `awaited` is how many
    records have to come before they are compared, where the controller goes on unasked.
    """

    api: str
    version: int
    body: Body
    is_placed: bool = False
    awaited: int = 0

    @property
    def key(self) -> int:
        return API_KEYS[self.api]

    def as_json(self) -> str:
        row: dict[str, Any] = {"api": self.api, "version": self.version, "body": self.body}
        row |= {"placed": True} if self.is_placed else {}
        return json.dumps(row | ({"awaited": self.awaited} if self.awaited else {}))


@dataclass(frozen=True, slots=True)
class Silence:
    """A time in which some brokers say nothing, until the controller fences each of them.

    Each must have sent a heartbeat since it was registered or unregistered.
    Meanwhile the brokers of `alive` send heartbeats.
    """

    silent: tuple[int, ...]
    alive: tuple[int, ...] = ()

    def as_json(self) -> str:
        return json.dumps({"silent": self.silent, "alive": self.alive})


AnyStep: TypeAlias = Step | Silence


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in their order, and what they were made from."""

    kind: str
    seed: int
    steps: tuple[AnyStep, ...] = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.seed}"

    def as_lines(self) -> str:
        return "".join(f"{step.as_json()}\n" for step in self.steps)


S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)


def message_of(kind: type[M], body: Body, version: int) -> M:
    """Return the message with the fields of `body` that `version` can carry."""
    return _struct_of(kind, body, version)


def _struct_of(kind: type[S], body: Body, version: int) -> S:
    made = kind()
    by_name = {field.json_name: field for field in fields_of(kind)}
    for name, value in body.items():
        field = by_name[name]
        if field.is_in(version):
            setattr(made, field.attribute, _value(kind, field, value, version))
    return made


def _value(kind: type[Struct], field: FieldFacts, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.kind.startswith("[]"):
        elements = cast("list[Any]", value)
        return [_element(kind, field.kind[2:], element, version) for element in elements]
    return _element(kind, field.kind, value, version)


def _element(kind: type[Struct], name: str, value: Any, version: int) -> Any:
    inner = element_class(kind, name)
    if inner is not None and isinstance(value, Mapping):
        return _struct_of(inner, cast("Body", value), version)
    if name == "uuid":
        return uuid_from_text(value)
    if name in {"bytes", "records"}:
        return base64.b64decode(value)
    return value


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
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in ranges.items()
    ]


def registration(
    broker: int, *, incarnation: int = 1, directories: int = 1, rack: str | None = None
) -> Fields:
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
    return [
        Step("BrokerRegistration", 4, registration(broker, **fields)),
        Step("BrokerHeartbeat", 2, heartbeat(broker)),
    ]


def topic(name: str, assignments: Sequence[Sequence[int]], **fields: object) -> Fields:
    rows = [
        {"partitionIndex": index, "brokerIds": list(replicas)}
        for index, replicas in enumerate(assignments)
    ]
    counts = {"numPartitions": -1, "replicationFactor": -1}
    return {"name": name, **counts, "assignments": rows, **fields}


def created(*topics: Fields, version: int = 7, validate_only: bool = False) -> Step:
    body = {"topics": list(topics), "timeoutMs": TIMEOUT_MS, "validateOnly": validate_only}
    return Step("CreateTopics", version, body)


def feature_level(name: str, level: int, *, upgrade_type: int) -> Step:
    """Return the step that finalizes a level; the type is 1 up, 2 down safely, 3 down unsafely."""
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": upgrade_type}
    return Step("UpdateFeatures", 2, {"timeoutMs": TIMEOUT_MS, "featureUpdates": [update]})
