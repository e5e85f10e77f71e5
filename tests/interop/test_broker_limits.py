"""Every field of the data plane's and groups' requests at its limits, beside a real broker.

Each request differs in a single field from one that is fine. Both brokers get the same ones in the
same order, so their logs and groups go the same way. The newest version of each request; all
versions with KVORUM_BAD_INPUT=all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import pytest
from tests.interop.clients.confluent import ConfluentDriver
from tests.interop.differential.failures import is_failure, is_met_otherwise
from tests.interop.differential.limits import changed_bodies
from tests.interop.differential.messages import message_of
from tests.interop.differential.sides import NO_ANSWER
from tests.interop.protocol.broker_bodies import bodies
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id, wait_until_led
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.node.handlers.registry import broker_apis
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_to_text

IS_WHOLE: Final = os.environ.get("KVORUM_BAD_INPUT") == "all"
TOPIC: Final = "limits"
KEYS: Final = {spec.name: key for key, spec in API_SPECS.items()}
# Ours coordinate no transactions (docs/differences.md).
OF_TRANSACTIONS: Final = frozenset({"transactionalId", "keyType"})
NAMES: Final = tuple(bodies(TOPIC, ""))
SILENCE_S: Final = 5.0
"""How long a real broker is silent that never answers, as it does with some requests."""
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    # The records are from 1970: a broker removes them at a time of its own.
    "log.retention.ms": "-1",
}
# How long somebody is ready to wait says nothing about the answer.
PATIENT: Final = frozenset({"maxWaitMs", "timeoutMs", "rebalanceTimeoutMs", "minBytes"})
# What each broker draws, stamps, or has of its own.
OWN: Final = frozenset(
    {
        "memberId",
        "leader",
        "producerId",
        "logAppendTimeMs",
        "sessionId",
        "errorMessage",
        "logDir",
        "totalBytes",
        "usableBytes",
        "partitionSize",
        "partitionErrorMessage",
        "port",
        "lastTimestamp",
        "throttleTimeMs",
    }
)


class Broker:
    """One of the two, with the id that the topic has there."""

    def __init__(self, address: str) -> None:
        self.address = address
        with ConfluentDriver(address) as driver:
            assert {done.code for done in driver.create_topics([TopicWish(TOPIC)]).values()} == {0}
        with RawClient(address) as client:
            wait_until_led(client, TOPIC)
            self.topic_id = uuid_to_text(topic_id(client, TOPIC))
            # The first ids of producers have to be fetched from the controller.
            wait_for(lambda: _gives_producer_ids(client), "producers get ids")
            # The topic of the groups is created with the first look for a coordinator.
            wait_for(lambda: _finds_coordinator(client), "groups are served")

    def requests(self, name: str, version: int) -> Iterator[tuple[str, Message]]:
        """Yield requests with one field at a limit, and what it is."""
        kind = request_class(KEYS[name])
        body = bodies(TOPIC, self.topic_id)[name]
        yield "as it is", message_of(kind, body, version)
        for path, changed in changed_bodies(kind, body, version):
            if path[-1] not in PATIENT | OF_TRANSACTIONS and not _is_of_all_topics(name, path):
                value = _at(changed, path)
                what = f"{'.'.join(map(str, path))} = {str(value)[:60]}"
                yield what.replace(self.topic_id, "<id>"), message_of(kind, changed, version)

    def said(self, request: Message, version: int, patience_s: float) -> Json:
        """Return what the broker says, without what is its own; or that it says nothing."""
        key = request.API_KEY
        assert key is not None
        try:
            with RawClient(self.address) as client:
                client.socket.settimeout(patience_s)
                client.send(request, version)
                frame = client.read_frame()
        except OSError:
            return NO_ANSWER
        if frame is None:
            return NO_ANSWER
        _, response = decode_response_frame(
            frame, response_class=response_class(key), version=version
        )
        return self._without_own(to_json(response, version))

    def _without_own(self, value: Json) -> Json:
        match value:
            case dict():
                fields = cast("dict[str, Json]", value)
                return {
                    name: "<own>" if name in OWN else self._without_own(each)
                    for name, each in fields.items()
                }
            case list():
                # The order of groups and of log directories' topics is that of a hash table.
                elements = cast("Iterable[Json]", value)
                return sorted((self._without_own(each) for each in elements), key=str)
            case _:
                return "<id>" if value == self.topic_id else value


def _gives_producer_ids(client: RawClient) -> bool:
    answer = client.ask(InitProducerIdRequest(None, 1000), InitProducerIdResponse, 4)
    return answer.error_code == ErrorCode.NONE


def _finds_coordinator(client: RawClient) -> bool:
    request = FindCoordinatorRequest(coordinator_keys=["limits"])
    (found,) = client.ask(request, FindCoordinatorResponse, 4).coordinators
    return found.error_code == ErrorCode.NONE


def _is_of_all_topics(name: str, path: tuple[str | int, ...]) -> bool:
    """Return whether the answer has topics that only one broker made by itself."""
    return name == "DescribeLogDirs" and path == ("topics",)


def _at(body: Mapping[str, Any], path: tuple[str | int, ...]) -> object:
    value: Any = body
    for step in path:
        value = value[step]
    return value


@pytest.fixture(scope="module")
def brokers(both_nodes: BothNodes) -> Iterator[tuple[Broker, Broker]]:
    """Ours and a real one, for all requests."""
    with both_nodes(SETTINGS) as (real, ours):
        yield Broker(ours.address), Broker(real.address)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_no_value_of_a_field_is_met_otherwise_than_by_kafka(
    brokers: tuple[Broker, Broker], name: str
) -> None:
    ours, real = brokers
    served = broker_apis()[KEYS[name]]
    differing, compared = list[str](), 0
    first = served.min_version if IS_WHOLE else served.max_version
    for version in range(first, served.max_version + 1):
        both = zip(ours.requests(name, version), real.requests(name, version), strict=True)
        for (what, to_ours), (_, to_real) in both:
            try:
                to_real.encode(version)
            except EncodeError:
                continue
            expected = real.said(to_real, version, SILENCE_S)
            # Ours has all the time where the real one answers.
            patience_s = SILENCE_S if expected == NO_ANSWER else PATIENCE_S
            found = ours.said(to_ours, version, patience_s)
            compared += not is_failure(expected)
            if is_met_otherwise(found, expected):
                differing.append(f"v{version} {what}\n  ours {found}\n  real {expected}")
    assert not differing, f"{len(differing)} of {compared}\n" + "\n".join(differing[:20])
    assert compared
