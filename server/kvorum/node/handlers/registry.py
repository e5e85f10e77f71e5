"""The APIs that a node serves on each kind of listener: those that ApiVersions lists.

No line registers an API. The module with the name of an API is the API, and the package of the
module decides which part of the node answers it. A listener serves the APIs that the schema lists
for its kind of node and that one of these packages has; the first package in this list counts:

==============================  =============================  ==================================
on a broker's listeners         `node.handlers`                the module answers (`BrokerApi`)
                                `node.handlers.forwarded`      checks something, then forwards
                                `broker.views`                 reads the metadata (`ViewApi`)
                                `node.raft.translation`        is forwarded (`RaftApi`)
                                `controller.apis`              is forwarded (`ControllerApi`)
on a controller's listeners     `node.raft.translation`        the replica answers (`RaftApi`)
                                `controller.apis`              the active controller decides
                                `node.handlers`                answers (`ControllerListenerApi`)
                                `broker.views`                 reads the metadata (`ViewApi`)
==============================  =============================  ==================================

A module is imported with the first request for its API: ApiVersions needs only the listing of the
packages and the table of the schemas. Versions are those of the protocol, without unstable ones.
The exception, Produce, is one of the protocol too and stands in `kvorum.wire.apis`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from kvorum.broker import views
from kvorum.broker.view_api import ViewApi
from kvorum.controller.requests import controller_apis as decided_apis
from kvorum.metadata.api import find_apis
from kvorum.node import handlers
from kvorum.node.handlers import adapters, forwarded
from kvorum.node.raft import translation
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.services import (
    BrokerApi,
    BrokerServices,
    ControllerListenerApi,
    ControllerServices,
)
from kvorum.node.serving.request_handler import ListenerApi, ServedApi, ServedApis, Services
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.primitives import Message

Value = TypeVar("Value")
BROKER: Final = "broker"
CONTROLLER: Final = "controller"
_Load: TypeAlias = Callable[[], ListenerApi[Services, Message]]
_BROKER_API: Final[type[BrokerApi[Message]]] = BrokerApi
_CONTROLLER_LISTENER_API: Final[type[ControllerListenerApi[Message]]] = ControllerListenerApi
_RAFT_API: Final[type[RaftApi[Message]]] = RaftApi
_VIEW_API: Final[type[ViewApi[Message]]] = ViewApi


@cache
def broker_apis() -> ServedApis[BrokerServices]:
    """Return the APIs of a broker's listeners, by key."""
    return _served(BROKER, {**_forwarded(), **_viewed(), **_looked_at(), **_handled()})


@cache
def broker_api_versions() -> Mapping[int, tuple[int, int]]:
    """Return the lowest and highest version of each API key that brokers serve."""
    return MappingProxyType(
        {key: (api.min_version, api.max_version) for key, api in broker_apis().items()}
    )


@cache
def controller_apis() -> ServedApis[ControllerServices]:
    """Return the APIs of a controller's listeners, by key."""
    return _served(
        CONTROLLER,
        {
            **_adapted(find_apis(views, _VIEW_API), adapters.viewed_by_controller),
            **find_apis(handlers, _CONTROLLER_LISTENER_API),
            **_adapted(decided_apis(), adapters.decided),
            **_adapted(find_apis(translation, _RAFT_API), adapters.of_replica),
        },
    )


@cache
def forwardable_keys() -> frozenset[ApiKey]:
    """Return the keys of the APIs that a broker cannot answer without the controller."""
    passed_on = _forwarded().keys() - _viewed().keys() | _looked_at().keys()
    listed = {key for key in passed_on if BROKER in API_SPECS[key].listeners}
    return frozenset(listed - _handled().keys())


def _forwarded() -> dict[ApiKey, _Load[BrokerServices]]:
    """Return the APIs that a broker forwards without a check of its own."""
    return {
        **_adapted(decided_apis(), adapters.forwarded),
        **_adapted(find_apis(translation, _RAFT_API), adapters.forwarded_to_replica),
    }


def _viewed() -> dict[ApiKey, _Load[BrokerServices]]:
    return _adapted(find_apis(views, _VIEW_API), adapters.viewed_by_broker)


def _looked_at() -> dict[ApiKey, _Load[BrokerServices]]:
    """Return the APIs that a broker checks before it forwards them."""
    return dict(find_apis(forwarded, _BROKER_API))


def _handled() -> dict[ApiKey, _Load[BrokerServices]]:
    return dict(find_apis(handlers, _BROKER_API))


def _adapted(
    loads: Mapping[ApiKey, Callable[[], Value]],
    adapt: Callable[[Value], ListenerApi[Services, Message]],
) -> dict[ApiKey, _Load[Services]]:
    def loading(load: Callable[[], Value]) -> _Load[Services]:
        return cache(lambda: adapt(load()))

    return {key: loading(load) for key, load in loads.items()}


def _served(kind: str, loads: Mapping[ApiKey, _Load[Services]]) -> ServedApis[Services]:
    """Return the APIs that the schema lists for a kind of node, in the order of their keys."""
    return MappingProxyType(
        {
            spec.key: ServedApi(
                key=spec.key,
                min_version=spec.min_version,
                max_version=spec.max_stable_version,
                min_listed=spec.min_listed_version,
                load=loads[spec.key],
            )
            for spec in API_SPECS.values()
            if spec.key in loads and kind in spec.listeners
        }
    )
