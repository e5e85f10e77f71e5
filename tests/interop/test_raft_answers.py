"""The quorum's own requests to a real controller and to ours, in every version: equal answers."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.interop.protocol.building import build
from tests.interop.protocol.raft_requests import requests_for, steps_of_giving_way
from tests.interop.protocol.requests import Fields
from tests.interop.raft_answers import answer, quorum_of
from tests.support.node import BothNodes
from tests.support.waiting import wait_for

from kvorum.node.handlers.registry import controller_apis
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.errors import EncodeError
from kvorum.wire.json_form import Json

pytestmark = pytest.mark.sample


KEYS = (
    ApiKey.FETCH,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)


@pytest.fixture(scope="module")
def addresses(both_nodes: BothNodes) -> Iterator[tuple[str, str]]:
    """The controller listeners of ours and of the real node."""
    with both_nodes() as (real, ours):
        yield ours.controller, real.controller


def answers(address: str, fields: Fields, *, key: int, version: int) -> Json:
    """Return what a node says to fields; None where this version cannot carry them."""
    request = build(request_class(key), fields)
    try:
        request.encode(version)
    except EncodeError:
        return None
    return answer(address, request, version)


@pytest.mark.parametrize("key", [pytest.param(key, id=API_SPECS[key].name) for key in KEYS])
def test_every_version_is_answered_alike(addresses: tuple[str, str], key: int) -> None:
    ours, real = addresses
    both = [requests_for(quorum_of(address))[key] for address in (ours, real)]
    served = controller_apis()[key]
    compared, differing = 0, list[tuple[int, Fields, Json, Json]]()
    for version in range(served.min_version, served.max_version + 1):
        for our_fields, real_fields in zip(*both, strict=True):
            expected = answers(real, real_fields, key=key, version=version)
            found = answers(ours, our_fields, key=key, version=version)
            compared += expected is not None
            if found != expected:
                differing.append((version, our_fields, found, expected))
    assert not differing, "\n".join(
        f"v{version} {fields}\n  ours {found}\n  real {expected}"
        for version, fields, found, expected in differing
    )
    assert compared >= len(both[0])


def test_a_part_of_a_snapshot_is_refused_as_a_real_node_means_to(
    addresses: tuple[str, str],
) -> None:
    """A real node cannot write the answer it has made: it leaves out the bytes, which may not be
    null, fails on that, and says UNKNOWN_SERVER_ERROR. Ours says what it was about to say, which
    its followers understand: they then ask for another snapshot, not for the same for ever.
    """
    ours, real = addresses
    both = [requests_for(quorum_of(address))[ApiKey.FETCH_SNAPSHOT] for address in (ours, real)]
    unwritten: Json = {"throttleTimeMs": 0, "errorCode": -1, "topics": []}
    meant = iter((98, 98, 3, 3, 98, 98, 74, 75))
    for our_fields, real_fields in zip(*both, strict=True):
        expected = answers(real, real_fields, key=ApiKey.FETCH_SNAPSHOT, version=1)
        found = cast(
            "dict[str, Any]", answers(ours, our_fields, key=ApiKey.FETCH_SNAPSHOT, version=1)
        )
        if expected == unwritten:
            assert found["errorCode"] == 0
            assert found["topics"][0]["partitions"][0]["errorCode"] == next(meant)
        else:
            assert found == expected
    assert next(meant, None) is None


def test_a_leader_gives_way_as_a_real_one_does(addresses: tuple[str, str]) -> None:
    said: list[list[Json]] = []
    for address in addresses:
        steps = steps_of_giving_way(quorum_of(address))
        said.append([answers(address, f, key=key, version=v) for key, v, f in steps])
        await_leadership(address)
    for number, (found, expected) in enumerate(zip(*said, strict=True)):
        assert found == expected, number
        assert expected is not None


def await_leadership(address: str) -> None:
    """Ask until the node leads again."""
    wait_for(
        lambda: bool(quorum_of(address).directory_id),
        f"{address} leads again",
        not_yet=(IndexError,),
    )
