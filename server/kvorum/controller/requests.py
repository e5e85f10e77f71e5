"""The controller's front door: a request goes in, records and the answer come out.

What handles a request is imported with the first request of its kind: a node that starts should
not have to wait for code that it may never need.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.controller.refusals import refusal
from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.primitives import Message

Handle: TypeAlias = Callable[[MetadataImage, Message, ControllerContext], ControllerResult[Message]]

HANDLERS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        19: ("create_topics", "create_topics"),
        20: ("delete_topics", "delete_topics"),
        33: ("configs.legacy_alter", "alter_configs"),
        37: ("create_partitions", "create_partitions"),
        43: ("elect_leaders", "elect_leaders"),
        44: ("configs.incremental_alter", "incremental_alter_configs"),
        45: ("alter_reassignments", "alter_partition_reassignments"),
        46: ("list_reassignments", "list_partition_reassignments"),
        49: ("client_quotas", "alter_client_quotas"),
        51: ("scram", "alter_user_scram_credentials"),
        56: ("alter_partition", "alter_partition"),
        57: ("update_features", "update_features"),
        60: ("describe_cluster", "describe_cluster"),
        62: ("broker_registration", "register_broker"),
        63: ("broker_heartbeat", "broker_heartbeat"),
        64: ("unregister_broker", "unregister_broker"),
        67: ("allocate_producer_ids", "allocate_producer_ids"),
        70: ("controller_registration", "register_controller"),
        73: ("assign_directories", "assign_replicas_to_directories"),
    }
)
"""The module and the function that handle each request, by API key."""


def handle(
    image: MetadataImage, request: Message, context: ControllerContext
) -> ControllerResult[Message]:
    """Return what the active controller does with `request`, `image` being its pending state.

    A request that is refused as a whole is answered in its own response with the error Kafka
    would give, without records. Raises `KeyError` for a request the controller does not handle.
    """
    handle_request = handler_of(request.API_KEY)
    try:
        return handle_request(image, request, context)
    except RequestError as error:
        return ControllerResult(error_response(request, error, api_version=context.api_version))


def error_response(request: Message, error: RequestError, *, api_version: int) -> Message:
    """Return the response that refuses the whole of `request` with `error`.

    This is also what a controller that is not active answers with (NOT_CONTROLLER).
    """
    return refusal(request, error, api_version=api_version)


def handler_of(api_key: int | None) -> Handle:
    """Return what handles the requests of `api_key`; `KeyError` where nothing does."""
    module, function = HANDLERS[-1 if api_key is None else api_key]
    found: Handle = getattr(importlib.import_module(f"kvorum.controller.{module}"), function)
    return found
