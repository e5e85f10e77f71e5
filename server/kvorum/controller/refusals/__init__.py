"""The answer to each request when the whole of it is refused.

What refuses a request is imported when a request of its kind is refused first.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol, cast

from kvorum.metadata.request_error import RequestError
from kvorum.wire.primitives import Message

REFUSED_BY_VERSION: Final = frozenset({38, 43})
"""Requests whose refusal looks different in different versions."""
REFUSALS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        19: ("topics", "create_topics"),
        20: ("topics", "delete_topics"),
        30: ("security", "create_acls"),
        31: ("security", "delete_acls"),
        33: ("settings", "alter_configs"),
        37: ("topics", "create_partitions"),
        38: ("security", "create_delegation_token"),
        39: ("security", "renew_delegation_token"),
        40: ("security", "expire_delegation_token"),
        43: ("partitions", "elect_leaders"),
        44: ("settings", "incremental_alter_configs"),
        45: ("partitions", "alter_partition_reassignments"),
        46: ("partitions", "list_partition_reassignments"),
        49: ("settings", "alter_client_quotas"),
        51: ("settings", "alter_user_scram_credentials"),
        56: ("partitions", "alter_partition"),
        57: ("cluster", "update_features"),
        60: ("cluster", "describe_cluster"),
        62: ("cluster", "register_broker"),
        63: ("cluster", "broker_heartbeat"),
        64: ("cluster", "unregister_broker"),
        67: ("cluster", "allocate_producer_ids"),
        70: ("cluster", "register_controller"),
        73: ("partitions", "assign_replicas_to_directories"),
    }
)
"""The module and the function that refuse each request, by API key."""


class _Refuse(Protocol):
    """Returns the response that refuses a request."""

    def __call__(self, request: Message, error: RequestError, /, **options: int) -> Message: ...


def refusal(request: Message, error: RequestError, *, api_version: int) -> Message:
    """Return the response that refuses the whole of `request`; `KeyError` for one not handled."""
    key = -1 if request.API_KEY is None else request.API_KEY
    module, function = REFUSALS[key]
    refuse = cast(
        "_Refuse",
        getattr(importlib.import_module(f"kvorum.controller.refusals.{module}"), function),
    )
    if key in REFUSED_BY_VERSION:
        return refuse(request, error, api_version=api_version)
    return refuse(request, error)
