"""The classes of APIs on the two kinds of listeners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.listener_api import ListenerApi
from kvorum.wire.primitives import Message

Request = TypeVar("Request", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerApi(ListenerApi[BrokerServices, Request]):
    """One API on a broker's listeners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerListenerApi(ListenerApi[ControllerServices, Request]):
    """One API on a controller's listeners."""
