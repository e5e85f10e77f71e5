"""Configurations of groups, and broker keys with bounds: the answers of a real broker and ours.

What a controller makes of them is compared by `tests.interop.differential`.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from tests.interop.asked_broker import INTERNAL_TOPICS, AskedBroker
from tests.interop.differential.script import message_of
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.json_form import Json
from kvorum.wire.messages.alter_configs import AlterConfigsRequest
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.list_config_resources import ListConfigResourcesRequest
from kvorum.wire.primitives import Message

pytestmark = pytest.mark.slow

BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
SESSION: Final = "consumer.session.timeout.ms"
HEARTBEAT: Final = "consumer.heartbeat.interval.ms"
TAGS: Final = "streams.rack.aware.assignment.tags"
KINDS: Final = ("consumer", "share", "streams")
BOUNDED: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "num.replica.fetchers": ("3", "2", "5", "4", "1", "2"),
        "num.recovery.threads.per.data.dir": ("5", "4", "1", "2"),
        "num.io.threads": ("5", "4", "1", "2"),
        "background.threads": ("4", "5", "21"),
        "log.cleaner.threads": ("3", "2", "4", "1", "2"),
        "log.cleaner.dedupe.buffer.size": ("1048576", "1048577"),
        "log.cleaner.backoff.ms": ("1", "-1"),
        "max.connections.per.ip": ("0", "100"),
        "max.connections.per.ip.overrides": (
            *("nonsense", "a:b:5", "127.0.0.1:many", "127.0.0 1:5", "::1:5", "127.0.0.1:", ":3"),
            *("127.0.0.1:100", "127.0.0.1:100,nonsense", "10.0.0.1:-1"),
        ),
        "cordoned.log.dirs": ("/nowhere", "*,/nowhere", "*"),
    }
)
"""Values of keys in their order, each to be judged by the one in force."""
OWN: Final = frozenset({"throttleTimeMs", "documentation"})
"""Fields of answers that are not compared: kvorum has lines of its own about keys."""


class Change(NamedTuple):
    """A key, what is done with it, and a value."""

    key: str
    operation: int
    value: str | None


NAMES: Final = ("g", "", " ", "gé", "x" * 300)
CHANGES: Final[Sequence[tuple[Change, ...]]] = (
    (Change(SESSION, SET, "50000"),),
    (Change(SESSION, SET, None),),
    (Change(SESSION, SET, "44999"),),
    (Change(SESSION, SET, "50000"), Change(SESSION, SET, "50000")),
    (Change(SESSION, APPEND, "1"),),
    (Change(HEARTBEAT, SET, "15000"), Change("consumer.assignment.interval.ms", SET, "5")),
    (Change("nope", SET, "1"),),
    (Change(TAGS, APPEND, "zone"),),
    (Change(TAGS, APPEND, "zone"),),
    (Change(TAGS, SUBTRACT, "zone"),),
    (Change(SESSION, DELETE, None),),
)


def altered(kind: int, name: str, *changes: Change, validates: bool = False) -> Message:
    configs = [
        {"name": each.key, "configOperation": each.operation, "value": each.value}
        for each in changes
    ]
    return of_resource(IncrementalAlterConfigsRequest, kind, name, configs, validates)


def replaced(kind: int, name: str, *changes: Change) -> Message:
    configs = [{"name": each.key, "value": each.value} for each in changes]
    return of_resource(AlterConfigsRequest, kind, name, configs, validates=False)


def of_resource(
    request: type[AlterConfigsRequest | IncrementalAlterConfigsRequest],
    kind: int,
    name: str,
    configs: list[dict[str, Any]],
    validates: bool,
) -> Message:
    resource = {"resourceType": kind, "resourceName": name, "configs": configs}
    body = {"resources": [resource], "validateOnly": validates}
    return message_of(request, body, request.MAX_VERSION)


def described(kind: int, name: str, *keys: str) -> Message:
    resource = {
        "resourceType": kind,
        "resourceName": name,
        "configurationKeys": list(keys) or None,
    }
    body = {"resources": [resource], "includeSynonyms": True, "includeDocumentation": True}
    return message_of(DescribeConfigsRequest, body, DescribeConfigsRequest.MAX_VERSION)


def listed(*kinds: int) -> Message:
    return ListConfigResourcesRequest(list(kinds))


class Sides(NamedTuple):
    """A real node and ours, and what is asked of both."""

    real: AskedBroker
    ours: AskedBroker
    controllers: tuple[str, str]

    def same(self, request: Message) -> Json:
        """Return the answer of both to a change."""
        theirs, found = self._answers(request)
        assert found == theirs, request
        return theirs

    def soon_same(self, request: Message) -> Json:
        """Return the answer of both, once both brokers have followed their controllers."""
        return wait_for(lambda: self._common_answer(request), f"both answer alike: {request}")

    def let_through(self, request: Message) -> None:
        """Have both controllers write a change that a broker would refuse."""
        for address in self.controllers:
            with RawClient(address) as client:
                version = IncrementalAlterConfigsRequest.MAX_VERSION
                response = client.ask(request, IncrementalAlterConfigsResponse, version)
            assert [each.error_code for each in response.responses] == [ErrorCode.NONE]

    def _answers(self, request: Message) -> tuple[Json, Json]:
        version = request.MAX_VERSION
        real, ours = (side.said(request, version, own=OWN) for side in (self.real, self.ours))
        return real, ours

    def _common_answer(self, request: Message) -> Json | None:
        theirs, found = self._answers(request)
        return theirs if found == theirs else None


def asked(node: Node) -> AskedBroker:
    return AskedBroker(node.address, "limits")


@pytest.fixture(scope="module")
def sides(both_nodes: BothNodes) -> Iterator[Sides]:
    with both_nodes(INTERNAL_TOPICS) as (real, ours):
        yield Sides(asked(real), asked(ours), (real.controller, ours.controller))


def test_a_groups_configuration_is_changed_and_described_alike(sides: Sides) -> None:
    for name in NAMES:
        for validates in (True, False):
            change = Change(SESSION, SET, "50000")
            sides.same(altered(GROUP, name, change, validates=validates))
            sides.soon_same(described(GROUP, name))
        sides.same(replaced(GROUP, name, Change(HEARTBEAT, SET, "6000")))
        sides.soon_same(described(GROUP, name))
    for changes in CHANGES:
        sides.same(altered(GROUP, "g", *changes))
        sides.soon_same(described(GROUP, "g"))
        sides.soon_same(described(GROUP, "g", SESSION, "nope"))


def test_groups_with_a_configuration_are_listed_alike(sides: Sides) -> None:
    sides.same(altered(GROUP, "listed", Change(SESSION, SET, "50000")))
    for kinds in ((), (GROUP,), (GROUP, CLIENT_METRICS), (BROKER,), (1,), (64,)):
        sides.soon_same(listed(*kinds))
    sides.same(replaced(GROUP, "listed"))
    sides.soon_same(listed(GROUP))


def heartbeat(epoch: int, **fields: Any) -> Message:
    body = {"groupId": "team", "memberId": "m", "memberEpoch": epoch, **fields}
    return message_of(ConsumerGroupHeartbeatRequest, body, 1)


def test_members_hear_of_a_groups_new_interval_with_their_next_heartbeat(sides: Sides) -> None:
    joined = heartbeat(
        0, subscribedTopicNames=["limits"], topicPartitions=[], rebalanceTimeoutMs=60_000
    )
    steady = heartbeat(2)
    assert "'heartbeatIntervalMs': 5000" in str(sides.same(joined))

    def hears_of(interval_ms: int) -> bool | None:
        return f"'heartbeatIntervalMs': {interval_ms}" in str(sides.soon_same(steady)) or None

    sides.same(altered(GROUP, "team", Change(HEARTBEAT, SET, "6000")))
    wait_for(lambda: hears_of(6000), "the member hears of the interval")
    sides.same(altered(GROUP, "team", Change(HEARTBEAT, DELETE, None)))
    wait_for(lambda: hears_of(5000), "the member hears of the broker's interval again")


@pytest.mark.parametrize("kind", KINDS)
def test_a_brokers_interval_stays_within_its_bounds(sides: Sides, kind: str) -> None:
    key = f"group.{kind}.assignment.interval.ms"
    for name in ("1", ""):
        for text in ("15001", "15000", "0", "-1", "x", "14999"):
            sides.same(altered(BROKER, name, Change(key, SET, text)))
            sides.soon_same(described(BROKER, "1", key))
            sides.soon_same(described(GROUP, "g", key.removeprefix("group.")))
        sides.same(replaced(BROKER, name, Change(key, SET, "15001")))
        sides.same(altered(BROKER, name, Change(key, DELETE, None)))
        sides.soon_same(described(BROKER, "1", key))


@pytest.mark.parametrize("name", ["1", ""])
def test_an_interval_that_controllers_let_through_is_brought_within_its_bounds(
    sides: Sides, name: str
) -> None:
    key = "group.consumer.assignment.interval.ms"
    sides.let_through(altered(BROKER, name, Change(key, SET, "20000")))
    shown = [
        described(BROKER, "1", key),
        described(BROKER, "", key),
        described(GROUP, "g", "consumer.assignment.interval.ms"),
    ]
    for request in shown:
        sides.soon_same(request)
    for level in ("1", ""):
        sides.same(altered(BROKER, level, Change("num.io.threads", SET, "9")))
    sides.let_through(altered(BROKER, name, Change(key, DELETE, None)))
    for request in shown:
        sides.soon_same(request)


@pytest.mark.parametrize("key", BOUNDED)
def test_a_value_is_judged_by_the_one_in_force(sides: Sides, key: str) -> None:
    for name in ("1", ""):
        for text in BOUNDED[key]:
            sides.same(altered(BROKER, name, Change(key, SET, text)))
            sides.soon_same(described(BROKER, "1", key))
        sides.same(altered(BROKER, name, Change(key, DELETE, None)))
        sides.soon_same(described(BROKER, "1", key))
