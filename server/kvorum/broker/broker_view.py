"""The context of a broker's response, besides the metadata image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The responding node, the listener that the request arrived on, and the client's access.

    `texts` are the explicit values of the node's properties file; `loggers` has the level of each
    logger that can be changed while the node runs. `access` contains the client's permissions;
    `may_ask_about_tokens` holds where the client has authenticated, and not by a token;
    `serves_metadata_topic` where the broker lets consumers read ``__cluster_metadata``.
    """

    node_id: int
    cluster_id: str
    listener: str
    random: Random
    api_version: int = 0
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    loggers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_auto_create_enabled: bool = True
    request_partitions_max: int = 2_000
    access: Access = UNRESTRICTED
    token_settings: TokenSettings = field(default_factory=TokenSettings)
    may_ask_about_tokens: bool = False
    serves_metadata_topic: bool = False
