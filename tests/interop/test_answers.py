"""The same requests to a real node and to ours, in every version: the same answers, by field."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.interop.protocol.building import build, comparable
from tests.interop.protocol.requests import KNOWN_USER, REQUESTS, Fields
from tests.support.node import FEATURES_SERVED_IN_PART, BothNodes
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic, wait_until_led

from kvorum.node.handlers.registry import broker_apis, controller_apis
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class, response_class
from kvorum.wire.errors import EncodeError
from kvorum.wire.json_form import Json
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

pytestmark = pytest.mark.sample


Addresses = tuple[str, str]
LISTENERS: Mapping[str, Callable[[], Mapping[int, Any]]] = {
    "broker": broker_apis,
    "controller": controller_apis,
}
# APIs whose answer is about the very list of what each node serves, compared apart.
LISTS_APIS = frozenset({ApiKey.API_VERSIONS})


@pytest.fixture(scope="module")
def addresses(both_nodes: BothNodes) -> Iterator[Mapping[str, Addresses]]:
    """Ours and the real node's, by listener; both are new but for `orders` and one user."""
    with both_nodes() as (real, ours):
        credential = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=KNOWN_USER, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"secret"
        )
        for address in (ours.address, real.address):
            with RawClient(address) as client:
                create_topic(client, "orders", 2)
                # A real broker takes its time until it serves the partitions that it leads.
                for partition in range(2):
                    wait_until_led(client, "orders", partition=partition)
                client.ask(
                    AlterUserScramCredentialsRequest(upsertions=[credential]),
                    AlterUserScramCredentialsResponse,
                    0,
                )
        yield {
            "broker": (ours.address, real.address),
            "controller": (ours.controller, real.controller),
        }


def answer(address: str, request: Message, version: int) -> Json:
    """Return what a node says: a whole response to this very request."""
    kind = response_class(request.API_KEY or 0)
    with RawClient(address) as client:
        return comparable(client.ask(request, kind, version), version)


def encodable(kind: type[Message], fields: Fields, version: int) -> Message | None:
    """Return the request, None where this version cannot carry these fields."""
    request = build(kind, fields)
    try:
        request.encode(version)
    except EncodeError:
        return None
    return request


# Kafka's controllers list these, and fail them or never answer.
FAILED_BY_KAFKA = {
    ("controller", ApiKey.DESCRIBE_DELEGATION_TOKEN),
    ("controller", ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS),
}
SERVED = [
    pytest.param(listener, key, id=f"{listener}-{API_SPECS[key].name}")
    for listener, apis in LISTENERS.items()
    for key in sorted((REQUESTS.keys() & apis().keys()) - LISTS_APIS)
    if (listener, key) not in FAILED_BY_KAFKA
]


@pytest.mark.parametrize(("listener", "key"), SERVED)
def test_every_version_of_a_request_is_answered_alike(
    addresses: Mapping[str, Addresses], listener: str, key: int
) -> None:
    api = LISTENERS[listener]()[key]
    ours, real = addresses[listener]
    compared = 0
    for version in range(api.min_version, api.max_version + 1):
        for fields in REQUESTS[key]:
            request = encodable(request_class(key), fields, version)
            if request is not None:
                expected = answer(real, request, version)
                assert answer(ours, request, version) == expected, (version, fields)
                compared += 1
    assert compared >= api.max_version - api.min_version + 1


@pytest.mark.parametrize("listener", LISTENERS)
def test_what_is_served_is_served_in_the_versions_of_real_kafka(
    addresses: Mapping[str, Addresses], listener: str
) -> None:
    ours, real = (listed(address) for address in addresses[listener])
    assert ours.items() <= real.items()


def listed(address: str) -> dict[int, tuple[int, int]]:
    """Return what a node lists: lowest and highest version by API key."""
    with RawClient(address) as client:
        response = client.ask(ApiVersionsRequest("raw", "1"), ApiVersionsResponse, 4)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize("listener", LISTENERS)
def test_api_versions_is_answered_alike_but_for_the_list(
    addresses: Mapping[str, Addresses], listener: str
) -> None:
    for version in range(5):
        for fields in REQUESTS[18]:
            request = build(ApiVersionsRequest, fields)
            said = [answer(address, request, version) for address in addresses[listener]]
            for each in said:
                each.pop("apiKeys")
                each["supportedFeatures"] = [
                    one
                    for one in each.get("supportedFeatures", [])
                    if one["name"] not in FEATURES_SERVED_IN_PART
                ]
            assert said[0] == said[1], (version, fields)
