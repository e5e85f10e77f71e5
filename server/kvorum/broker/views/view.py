"""What a broker brings to an answer beside the metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvorum.metadata.access import UNRESTRICTED, Access

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class BrokerView:
    """Who answers, and on which listener the request arrived.

    `texts` are the explicit values of the node's properties file; `loggers` the level of each
    logger that can be changed while the node runs. `access` tells what the client may do.
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
