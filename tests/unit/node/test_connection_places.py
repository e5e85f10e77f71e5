"""The descriptors that a process may have: what logs, roles and brokers get of them."""

import resource
from typing import Final

import pytest
from tests.support.waiting import StandingClock

from kvorum.metadata.configs_image import ConfigsImage, ResourceType, replay_config
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.open_file_limit import (
    RESERVED_DESCRIPTORS,
    connection_count_max,
    log_file_count_max,
)
from kvorum.node.serving.connection_quotas import (
    ConnectionQuotas,
    NodeConnectionQuotas,
    connection_places,
)
from kvorum.node.serving.connection_rates import AT_ONCE
from kvorum.wire.messages.config_record import ConfigRecord

ALL_LISTENERS: Final = "PUBLIC://:0,INTERNAL://:0,CONTROLLER://:0"
MANY: Final = 2**31 - 1
CLIENT: Final = "10.0.0.1"


def limit_open_files(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    def getrlimit(_: int) -> tuple[int, int]:
        return limit, limit

    monkeypatch.setattr(resource, "getrlimit", getrlimit)


def node_config(listeners: str = ALL_LISTENERS, **settings: str) -> NodeConfig:
    names = [each.partition(":")[0] for each in listeners.split(",")]
    return NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "log.dirs": "/nowhere",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": names[-2],
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            "listeners": listeners,
            "advertised.listeners": ",".join(f"{name}://here:9092" for name in names[:-1]),
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def quotas_of(config: NodeConfig) -> NodeConnectionQuotas:
    return NodeConnectionQuotas(config, MetadataImage, StandingClock())


def image_with(**settings: str) -> MetadataImage:
    """Return the image of a cluster in which all brokers have dynamic values."""
    configs = ConfigsImage()
    for key, value in settings.items():
        record = ConfigRecord(ResourceType.BROKER, "", key.replace("_", "."), value)
        configs = replay_config(configs, record)
    return MetadataImage(configs=configs)


def admitted(quotas: ConnectionQuotas, listener: str) -> int:
    """Return how many more connections a listener takes."""
    count = 0
    while quotas.admit(listener, CLIENT):
        count += 1
    return count


@pytest.mark.parametrize("limit", [64, 256, 1024, 20_000, 1_000_000])
@pytest.mark.parametrize("wanted", [7, 1_000, MANY])
def test_connections_and_logs_share_what_is_not_reserved(
    limit: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_open_files(monkeypatch, limit)
    connections = min(wanted, connection_count_max(has_logs=True))
    log_files = log_file_count_max(wanted)
    assert 0 < connections <= 3 * log_files + 3
    assert log_files >= limit // 8
    assert connections + log_files <= limit - min(RESERVED_DESCRIPTORS, limit // 2)
    assert connections + log_files >= limit // 2


def test_a_controller_has_all_of_it_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, 1024)
    assert connection_count_max(has_logs=False) == 1024 - RESERVED_DESCRIPTORS


def test_without_a_limit_nothing_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, resource.RLIM_INFINITY)
    assert connection_count_max(has_logs=True) >= 10**6
    assert log_file_count_max() >= 10**8


@pytest.mark.parametrize(
    ("settings", "places"),
    [
        ({}, {"PUBLIC": 515, "INTERNAL": 73, "CONTROLLER": 84}),
        # The limit of the node is that of each listener as well.
        ({"max_connections": "12"}, {"PUBLIC": 12, "INTERNAL": 12, "CONTROLLER": 12}),
    ],
    ids=["no_limit", "limit"],
)
def test_clients_leave_places_for_brokers_and_controllers(
    settings: dict[str, str], places: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_open_files(monkeypatch, 1024)
    config = node_config(**settings)
    quotas = quotas_of(config)
    assert quotas.of_listener("PUBLIC") is quotas.of_listener("INTERNAL")
    assert {name: admitted(quotas.of_listener(name), name) for name in places} == places
    assert connection_places(config) == sum(places.values())
    assert connection_places(config) <= connection_count_max(has_logs=True)


def test_the_only_listener_of_a_broker_has_all_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, 1024)
    config = node_config("PLAINTEXT://:0,CONTROLLER://:0")
    quotas = quotas_of(config)
    assert admitted(quotas.of_listener("PLAINTEXT"), "PLAINTEXT") == 588


def test_a_listener_takes_no_more_than_its_own_key_says() -> None:
    settings = {"listener.name.public.max.connections": "3"}
    quotas = quotas_of(node_config(**settings))
    assert admitted(quotas.of_listener("PUBLIC"), "PUBLIC") == 3


def test_an_override_of_a_host_counts_for_its_addresses() -> None:
    settings = {"max.connections.per.ip.overrides": "localhost:2"}
    quotas = quotas_of(node_config(**settings))
    admitted_here = [quotas.of_listener("PUBLIC").admit("PUBLIC", "127.0.0.1") for _ in range(3)]
    assert admitted_here == [True, True, False]
    unknown = {"max.connections.per.ip.overrides": "nowhere.invalid:1"}
    with pytest.raises(NodeStartError, match=r"nowhere\.invalid"):
        quotas_of(node_config(**unknown))


def test_dynamic_limits_count_from_the_next_connection_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quotas = quotas_of(node_config(max_connections="1"))
    public = quotas.of_listener("PUBLIC")
    assert admitted(public, "PUBLIC") == 1
    quotas.on_image(image_with(max_connections="3"))
    assert admitted(public, "PUBLIC") == 2
    caplog.clear()
    unknown = {"max.connections": "9", "max.connections.per.ip.overrides": "nowhere.invalid:1"}
    quotas.on_image(image_with(**unknown))
    assert "nowhere.invalid" in caplog.text
    assert admitted(public, "PUBLIC") == 0
    quotas.on_image(MetadataImage())
    public.release("PUBLIC", CLIENT)
    assert admitted(public, "PUBLIC") == 0, "three are above the limit of the properties"


def test_a_limit_that_would_shut_all_clients_out_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quotas = quotas_of(node_config())
    quotas.on_image(image_with(**{"max.connections.per.ip": "0"}))
    assert "max.connections.per.ip can be set to zero only if" in caplog.text
    assert quotas.of_listener("PUBLIC").admit("PUBLIC", CLIENT)


@pytest.mark.parametrize("host", ["10.0.0..1", f"{'a' * 64}.example"], ids=["empty", "too long"])
def test_an_override_of_what_can_be_no_host_changes_nothing(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = {"max.connections.per.ip.overrides": f"{host}:5"}
    quotas = quotas_of(node_config(max_connections="1"))
    quotas.on_image(image_with(max_connections="3", **overrides))
    assert host in caplog.text
    assert admitted(quotas.of_listener("PUBLIC"), "PUBLIC") == 1
    with pytest.raises(NodeStartError, match=host):
        quotas_of(node_config(**overrides))


def test_a_dynamic_rate_counts_from_the_next_connection_on() -> None:
    quotas = quotas_of(node_config())
    public = quotas.of_listener("PUBLIC")
    assert {public.pace("PUBLIC", CLIENT) for _ in range(100)} == {AT_ONCE}
    rate = {"listener.name.public.max.connection.creation.rate": "1"}
    quotas.on_image(image_with(**rate))
    assert [public.pace("PUBLIC", CLIENT) is AT_ONCE for _ in range(11)] == [True] * 10 + [False]
    assert quotas.of_listener("INTERNAL").pace("INTERNAL", CLIENT) is AT_ONCE
