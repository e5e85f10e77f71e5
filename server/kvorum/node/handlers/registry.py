"""Which APIs a node serves on which listener, and the handler of each: ApiVersions tells this list.

One line registers an API: its key, the module that answers it on the broker's listeners, and the
one on the controller's. A module is imported with the first request for it and has an `on_broker`,
an `on_controller`, or both. `forwarded` passes a request on to the active controller; `controlled`
has the controller of this node answer it; `raft` the replica of the metadata log. Versions are
those of the protocol, without unstable ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, TypeVar, cast

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.authorization import ON_BROKER, ON_CONTROLLER
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.dispatch import Answer, ServedApi
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.apis import API_SPECS

Node = TypeVar("Node")
Handler = Callable[[IncomingRequest, Node], Awaitable[Answer]]
_Find = Callable[[], Handler[Node]]
FORWARDED: Final = "forwarded"


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """One API: the modules that answer it on either kind of listener, None where it is not there.

    `is_forwardable` tells that a broker needs the controller for it. `min_listed` is the lowest
    version that ApiVersions tells where that is not the lowest that is served.
    """

    key: int
    broker: str | None = None
    controller: str | None = None
    is_forwardable: bool = False
    min_listed: int | None = None


def _forwarded(key: int, *, controller: str = "controlled") -> HandlerSpec:
    return HandlerSpec(key, FORWARDED, controller, is_forwardable=True)


HANDLERS: Final = (
    HandlerSpec(0, broker="produce", min_listed=0),
    HandlerSpec(1, "fetch", "raft"),
    HandlerSpec(2, broker="list_offsets"),
    HandlerSpec(3, broker="metadata"),
    HandlerSpec(10, broker="find_coordinator"),
    HandlerSpec(16, broker="list_groups"),
    HandlerSpec(17, "sasl_handshake", "sasl_handshake"),
    HandlerSpec(18, "api_versions", "api_versions"),
    _forwarded(19),
    _forwarded(20),
    HandlerSpec(29, "describe_acls", "describe_acls"),
    _forwarded(30, controller="alter_acls"),
    _forwarded(31, controller="alter_acls"),
    HandlerSpec(32, "describe_configs", "describe_configs"),
    HandlerSpec(33, "alter_configs", "controlled", is_forwardable=True),
    HandlerSpec(35, broker="describe_log_dirs"),
    HandlerSpec(36, "sasl_authenticate", "sasl_authenticate"),
    _forwarded(37),
    HandlerSpec(38, "delegation_tokens", "delegation_tokens", is_forwardable=True),
    HandlerSpec(39, "delegation_tokens", "delegation_tokens", is_forwardable=True),
    HandlerSpec(40, "delegation_tokens", "delegation_tokens", is_forwardable=True),
    HandlerSpec(41, "describe_delegation_tokens", "describe_delegation_tokens"),
    _forwarded(43),
    HandlerSpec(44, "incremental_alter_configs", "controlled", is_forwardable=True),
    _forwarded(45),
    _forwarded(46),
    HandlerSpec(48, broker="describe_client_quotas"),
    _forwarded(49),
    HandlerSpec(50, "describe_user_scram_credentials", "describe_user_scram_credentials"),
    _forwarded(51),
    HandlerSpec(52, controller="raft"),
    HandlerSpec(53, controller="raft"),
    HandlerSpec(54, controller="raft"),
    _forwarded(55, controller="raft"),
    HandlerSpec(56, controller="controlled"),
    _forwarded(57),
    HandlerSpec(58, controller="envelope"),
    HandlerSpec(59, controller="raft"),
    HandlerSpec(60, "describe_cluster", "describe_cluster"),
    HandlerSpec(62, controller="controlled"),
    HandlerSpec(63, controller="controlled"),
    _forwarded(64),
    HandlerSpec(66, broker="list_transactions"),
    HandlerSpec(67, controller="controlled"),
    HandlerSpec(70, controller="controlled"),
    HandlerSpec(73, controller="controlled"),
    HandlerSpec(74, broker="list_config_resources"),
    HandlerSpec(75, broker="describe_topic_partitions"),
    _forwarded(80, controller="raft"),
    _forwarded(81, controller="raft"),
    HandlerSpec(82, controller="raft"),
)


def broker_apis() -> Mapping[int, ServedApi[BrokerServices]]:
    """Return what a broker's listeners serve, by key."""
    served: dict[int, ServedApi[BrokerServices]] = {}
    for spec in HANDLERS:
        if spec.broker is not None:
            find = cast("_Find[BrokerServices]", _finder(spec.broker, "on_broker"))
            served[spec.key] = _served(spec, find, ON_BROKER)
    return MappingProxyType(served)


def controller_apis() -> Mapping[int, ServedApi[ControllerServices]]:
    """Return what a controller's listeners serve, by key."""
    served: dict[int, ServedApi[ControllerServices]] = {}
    for spec in HANDLERS:
        if spec.controller is not None:
            find = cast("_Find[ControllerServices]", _finder(spec.controller, "on_controller"))
            served[spec.key] = _served(spec, find, ON_CONTROLLER)
    return MappingProxyType(served)


def forwardable_keys() -> frozenset[int]:
    """Return the keys of what a broker cannot answer without the controller."""
    return frozenset(spec.key for spec in HANDLERS if spec.is_forwardable)


def _served(
    handler: HandlerSpec, find_handler: _Find[Node], operations: Mapping[int, AclOperation]
) -> ServedApi[Node]:
    api = API_SPECS[handler.key]
    return ServedApi(
        operation=operations.get(handler.key),
        key=handler.key,
        min_version=api.min_version,
        max_version=api.max_stable_version,
        min_listed=api.min_version if handler.min_listed is None else handler.min_listed,
        find_handler=find_handler,
    )


def _finder(module: str, name: str) -> Callable[[], object]:
    """Return a function that imports a handler when it is called first."""

    @cache
    def find() -> object:
        return getattr(importlib.import_module(f"kvorum.node.handlers.{module}"), name)

    return find
