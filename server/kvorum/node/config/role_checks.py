"""The checks of listeners and quorum that each role needs, in Kafka's order and words."""

from __future__ import annotations

from collections.abc import Callable

from kvorum.node.config.errors import ConfigError, require
from kvorum.node.config.listeners import Listeners
from kvorum.node.config.settings import QuorumSettings
from kvorum.node.config.values import NodeValues

BROKER_ONLY = frozenset({"broker"})
CONTROLLER_ONLY = frozenset({"controller"})

_NAMES = "controller.listener.names"
_MAP = "listener.security.protocol.map"


def check_roles(
    values: NodeValues,
    *,
    role_names: frozenset[str],
    listeners: Listeners,
    quorum: QuorumSettings,
) -> list[str]:
    """Raise ConfigError for settings that do not suit the roles; return warnings."""
    if not quorum.voters and not quorum.bootstrap_servers:
        raise ConfigError(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the "
            "set of bootstrap controllers or controller.quorum.voters must contain a parseable set "
            "of controllers."
        )
    check: Callable[[NodeValues, Listeners, QuorumSettings], list[str]] = _check_combined
    if role_names == BROKER_ONLY:
        check = _check_broker
    elif role_names == CONTROLLER_ONLY:
        check = _check_controller
    return check(values, listeners, quorum)


def _voters_text(quorum: QuorumSettings) -> str:
    return f"Set({', '.join(str(voter.node_id) for voter in quorum.voters)})"


def _check_broker(values: NodeValues, listeners: Listeners, quorum: QuorumSettings) -> list[str]:
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


def _check_controller(
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
    return _check_combined(values, listeners, quorum)


def _check_combined(values: NodeValues, listeners: Listeners, quorum: QuorumSettings) -> list[str]:
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
    bound = {each.name for each in listeners.bound}
    require(
        set(listeners.controller_names) <= bound,
        f"{_NAMES} must only contain values appearing in the 'listeners' configuration when "
        "running the KRaft controller role",
    )
    return []
