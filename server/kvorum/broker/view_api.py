"""All the facts of one API that is answered out of the metadata alone, in one value.

The module in `kvorum.broker.views` that answers such an API ends with its value. Brokers serve it,
and controllers as well where the schema lists it for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from kvorum.metadata.api import Api, RequestError
from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import Access
from kvorum.wire.primitives import Message

Request = TypeVar("Request", bound=Message)


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The responding node, the listener that the request arrived on, and the client's access.

    `texts` are the explicit values of the node's properties file. `access` contains the client's
    permissions; `quorum_leader_id` is None while no leader is known; `may_ask_about_tokens` holds
    where the client has authenticated, and not by a token; `serves_metadata_topic` where the broker
    lets consumers read ``__cluster_metadata``; `check_stores` raises RequestError for dynamic
    values of this node alone whose stores of keys and certificates it could not use.
    """

    node_id: int
    cluster_id: str
    listener: str
    access: Access
    api_version: int = 0
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_auto_create_enabled: bool = True
    request_partitions_max: int = 2_000
    quorum_leader_id: int | None = None
    token_settings: TokenSettings = field(default_factory=TokenSettings)
    may_ask_about_tokens: bool = False
    serves_metadata_topic: bool = False
    check_stores: Callable[[Mapping[str, str]], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewApi(Api[Request], Generic[Request]):
    """One API that reads the image. What has no default has to be said.

    - `answer`: makes the response. It may raise RequestError.
    - `refuse`: makes the response that refuses the whole of a request, in a version.
    - `form_problem`: what is wrong with a request beyond its schema; it counts as unreadable then.
    """

    answer: Callable[[MetadataImage, Request, BrokerView], Message]
    refuse: Callable[[Request, RequestError, int], Message]
    form_problem: Callable[[Request], str | None] | None = None
