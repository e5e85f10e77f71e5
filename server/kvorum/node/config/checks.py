"""Kafka's checks of a node's keys against each other and against its roles, in Kafka's order."""

from collections.abc import Iterable
from itertools import chain

from kvorum.groups.settings import REBALANCE_PROTOCOLS
from kvorum.metadata.config_definitions import (
    CONNECTIONS_OF_ADDRESSES,
    check_cleaner_memory,
    check_connections_per_address,
    check_cordoned_directories,
    check_group_bounds,
    check_log_times,
    connections_of_addresses,
)
from kvorum.node.config.assignors import check_assignors
from kvorum.node.config.errors import ConfigError, config_errors, require
from kvorum.node.config.listeners import Listener, Listeners
from kvorum.node.config.security import AUTHORIZER_CLASS, AUTHORIZER_KEY
from kvorum.node.config.settings import QuorumSettings
from kvorum.node.config.values import NodeValues

_NAMES = "controller.listener.names"
_MAP = "listener.security.protocol.map"
_ANY_HOST = "0.0.0.0"  # noqa: S104 - compared with, never bound


def check_node(
    values: NodeValues, *, listeners: Listeners, quorum: QuorumSettings
) -> tuple[str, ...]:
    """Raise ConfigError for settings that Kafka refuses; return its warnings."""
    role_names = frozenset(values.words("process.roles"))
    check_assignors(values)
    with config_errors():
        check_group_bounds(values.value_of)
    _check_early_start(values, listeners)
    require(
        "classic" in values.words(REBALANCE_PROTOCOLS),
        "Disabling the 'classic' protocol is not supported.",
    )
    require(
        values.integer("node.id") == values.integer("broker.id"),
        "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, "
        "please use `node.id` instead.",
    )
    _check_log(values)
    _check_replication(values)
    warnings = [
        *_heartbeat_warning(values),
        *_check_roles(values, role_names=role_names, listeners=listeners, quorum=quorum),
    ]
    if "broker" in role_names:
        _check_broker_listeners(listeners)
        with config_errors():
            check_cordoned_directories(values.value_of)
    _check_hosts(chain(listeners.advertised_brokers, listeners.advertised_controllers))
    _check_network(values, listeners)
    return tuple(warnings)


def check_authorizer(values: NodeValues) -> None:
    """Refuse an authorizer that only Kafka has: raises ConfigError."""
    authorizer = values.text(AUTHORIZER_KEY)
    require(
        authorizer in {"", AUTHORIZER_CLASS},
        f"{AUTHORIZER_KEY} is {authorizer}, but {AUTHORIZER_CLASS} is the only authorizer that "
        "kvorum has",
    )


def _check_early_start(values: NodeValues, listeners: Listeners) -> None:
    known = {each.name for each in listeners.bound}
    for word in values.words("early.start.listeners"):
        require(
            not word or word in known,
            f"early.start.listeners contains listener {word}, but this is not contained in "
            "listeners or controller.listener.names",
        )


def _check_log(values: NodeValues) -> None:
    with config_errors():
        check_log_times(values.texts)
        check_cleaner_memory(values.value_of)


def _check_replication(values: NodeValues) -> None:
    wait_ms = values.integer("replica.fetch.wait.max.ms")
    require(
        wait_ms <= values.integer("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    require(
        wait_ms <= values.integer("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )


def _heartbeat_warning(values: NodeValues) -> list[str]:
    heartbeat_ms = values.integer("broker.heartbeat.interval.ms")
    session_ms = values.integer("broker.session.timeout.ms")
    if heartbeat_ms * 2 <= session_ms:
        return []
    text = (
        f"broker.heartbeat.interval.ms ({heartbeat_ms} ms) is more than half of "
        f"broker.session.timeout.ms ({session_ms} ms): brokers may be fenced while they are alive"
    )
    return [text]


def _check_broker_listeners(listeners: Listeners) -> None:
    advertised = [each.name for each in listeners.advertised_brokers]
    bound = [each.name for each in listeners.bound]
    require(
        advertised,
        "There must be at least one broker advertised listener. Perhaps all listeners appear in "
        "controller.listener.names?",
    )
    require(
        listeners.inter_broker_name in advertised,
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The "
        "valid options based on currently configured listeners are "
        f"{','.join(advertised)}",
    )
    require(
        set(advertised) <= set(bound),
        "advertised.listeners listener names must be equal to or a subset of the ones defined in "
        f"listeners. Found {','.join(advertised)}. The valid options based on the current "
        f"configuration are {','.join(bound)}",
    )


def _check_hosts(advertised: Iterable[Listener]) -> None:
    require(
        all(each.host != _ANY_HOST for each in advertised),
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP "
        "address.",
    )


def _check_network(values: NodeValues, listeners: Listeners) -> None:
    mechanism = values.text("sasl.mechanism.inter.broker.protocol")
    enabled = values.of_listener(listeners.inter_broker_name)("sasl.enabled.mechanisms")
    assert isinstance(enabled, tuple)
    require(
        not listeners.inter_broker_protocol.uses_sasl or mechanism in enabled,
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when "
        "SASL is used for inter-broker communication",
    )
    queued_bytes = values.integer("queued.max.request.bytes")
    require(
        queued_bytes <= 0 or queued_bytes >= values.integer("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    with config_errors():
        connections_of_addresses(values.text(CONNECTIONS_OF_ADDRESSES))
        check_connections_per_address(values.value_of)
    idle_ms = values.integer("connections.max.idle.ms")
    delay_ms = values.integer("connection.failed.authentication.delay.ms")
    require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing "
        "out",
    )


def _check_roles(
    values: NodeValues, *, role_names: frozenset[str], listeners: Listeners, quorum: QuorumSettings
) -> list[str]:
    """Raise ConfigError for settings that do not suit the roles; return warnings."""
    if not quorum.voters and not quorum.bootstrap_servers:
        raise ConfigError(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the "
            "set of bootstrap controllers or controller.quorum.voters must contain a parseable set "
            "of controllers."
        )
    if role_names == frozenset({"broker"}):
        return _check_broker_role(values, listeners, quorum)
    if role_names == frozenset({"controller"}):
        return _check_controller_role(values, listeners, quorum)
    return _check_combined_role(values, listeners, quorum)


def _voters_text(quorum: QuorumSettings) -> str:
    return f"Set({', '.join(str(voter.node_id) for voter in quorum.voters)})"


def _check_broker_role(
    values: NodeValues, listeners: Listeners, quorum: QuorumSettings
) -> list[str]:
    node_id = values.integer("node.id")
    require(
        all(voter.node_id != node_id for voter in quorum.voters),
        f"If process.roles contains just the 'broker' role, the node id {node_id} must not be "
        f"included in the set of voters controller.quorum.voters={_voters_text(quorum)}",
    )
    require(
        not listeners.controllers,
        f"{_NAMES} must not contain a value appearing in the 'listeners' configuration when "
        "running KRaft with just the broker role",
    )
    for name in listeners.controller_names:
        require(
            name.upper() in listeners.protocols,
            f"Controller listener with name {name.upper()} defined in {_NAMES} not found in {_MAP} "
            f" (an explicit security mapping for each controller listener is required if {_MAP} is "
            "non-empty, or if there are security protocols other than PLAINTEXT in use)",
        )
    require(
        not values.value_of("controller.quorum.auto.join.enable"),
        "controller.quorum.auto.join.enable is only supported when process.roles contains the "
        "'controller' role.",
    )
    return _broker_warnings(values, listeners)


def _broker_warnings(values: NodeValues, listeners: Listeners) -> list[str]:
    warnings: list[str] = []
    if len(listeners.controller_names) > 1:
        first = listeners.controller_names[0]
        warnings.append(f"{_NAMES} has several entries; a broker uses the first only: {first}")
    warnings += [
        f"{name} is set on a broker; it belongs to the controller"
        for name in (
            "create.topic.policy.class.name",
            "alter.config.policy.class.name",
            "num.partitions",
            "default.replication.factor",
        )
        if values.is_set(name)
    ]
    return warnings


def _check_controller_role(
    values: NodeValues, listeners: Listeners, quorum: QuorumSettings
) -> list[str]:
    require(
        len(listeners.advertised_controllers) == len(listeners.bound),
        "The listeners config must only contain KRaft controller listeners from "
        f"{_NAMES} when process.roles=controller",
    )
    if values.is_set("inter.broker.listener.name"):
        require(
            listeners.inter_broker_name not in listeners.controller_names,
            f"{_NAMES} must not contain an explicitly set inter.broker.listener.name configuration "
            "value when process.roles=controller'",
        )
    return _check_combined_role(values, listeners, quorum)


def _check_combined_role(
    values: NodeValues, listeners: Listeners, quorum: QuorumSettings
) -> list[str]:
    node_id = values.integer("node.id")
    require(
        not quorum.voters or any(voter.node_id == node_id for voter in quorum.voters),
        f"If process.roles contains the 'controller' role, the node id {node_id} must be included "
        f"in the set of voters controller.quorum.voters={_voters_text(quorum)}",
    )
    require(
        listeners.advertised_controllers,
        f"{_NAMES} must contain at least one value appearing in the 'listeners' configuration when "
        "running the KRaft controller role",
    )
    require(
        set(listeners.controller_names) <= {each.name for each in listeners.bound},
        f"{_NAMES} must only contain values appearing in the 'listeners' configuration when "
        "running the KRaft controller role",
    )
    return []
