"""The versions that the clients of a world of brokers send."""

from random import Random

import pytest

from kvorum.node.handlers.registry import broker_apis
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.partitions.client_versions import ClientVersions
from kvorum.simulation.run import run_seed
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.join_group import JoinGroupRequest

CLIENTS = 400
WITH_OLDER_CLIENTS = 8


def test_older_clients_have_every_version_that_is_served() -> None:
    random = Random(1)
    found = {ClientVersions(random).of(FetchRequest, lowest=0, latest=None) for _ in range(CLIENTS)}
    served = broker_apis()[ApiKey.FETCH]
    assert found == set(range(served.min_version, served.max_version + 1))


def test_a_client_keeps_its_version_which_can_carry_what_it_says() -> None:
    random = Random(1)
    for client in [ClientVersions(random) for _ in range(CLIENTS)]:
        version = client.of(JoinGroupRequest, lowest=5, latest=None)
        assert 5 <= version <= JoinGroupRequest.MAX_VERSION
        assert client.of(JoinGroupRequest, lowest=5, latest=None) == version


def test_other_clients_have_the_latest_version_or_their_own() -> None:
    client = ClientVersions(None)
    assert client.of(FetchRequest, lowest=0, latest=None) == FetchRequest.MAX_VERSION
    assert client.of(FetchRequest, lowest=0, latest=10) == 10


@pytest.mark.slow
def test_a_world_of_older_clients_loses_nothing() -> None:
    result = run_seed(WITH_OLDER_CLIENTS, kind=WorldKind.BROKERS)
    assert result.failure is None, result.failure
    assert result.counts["requests of older clients"] > 500
