"""The controller's front door: a request goes in, records and the answer come out.

What handles a request is imported with the first request of its kind: a node that starts should
not have to wait for code that it may never need.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.controller.narrowing import Narrowed
from kvorum.controller.refusals import refusal
from kvorum.controller.result import ControllerResult, Pieces
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.access import Access
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.primitives import Message

Handle: TypeAlias = Callable[[MetadataImage, Message, ControllerContext], ControllerResult[Message]]
_InPieces: TypeAlias = Callable[
    [MetadataImage, Message, ControllerContext], Pieces[ControllerResult[Message]]
]
_Narrow: TypeAlias = Callable[[MetadataImage, Message, Access], Narrowed[Message, Message]]

HANDLERS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        19: ("create_topics", "create_topics"),
        20: ("delete_topics", "delete_topics"),
        30: ("acls", "create_acls"),
        31: ("acls", "delete_acls"),
        33: ("configs.legacy_alter", "alter_configs"),
        37: ("create_partitions", "create_partitions"),
        38: ("delegation_tokens", "create_delegation_token"),
        39: ("delegation_tokens", "renew_delegation_token"),
        40: ("delegation_tokens", "expire_delegation_token"),
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

IN_PIECES: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        62: ("broker_registration", "register_in_pieces"),
        63: ("broker_heartbeat", "heartbeat_in_pieces"),
    }
)
"""The same for requests whose records nothing limits: what handles them stops now and then."""

NARROWINGS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        19: ("authorized_topics", "narrow_create_topics"),
        20: ("authorized_topics", "narrow_delete_topics"),
        33: ("authorized_configs", "narrow_alter_configs"),
        37: ("authorized_topics", "narrow_create_partitions"),
        44: ("authorized_configs", "narrow_incremental_alter_configs"),
    }
)
"""What takes out of a request the parts that its client may not ask for, by API key.

Whole requests are refused before they come here: `kvorum.node.authorization`.
"""


def handle(
    image: MetadataImage, request: Message, context: ControllerContext
) -> ControllerResult[Message]:
    """Return what the active controller does with `request`, `image` being its pending state.

    A request that is refused as a whole is answered in its own response with the error Kafka
    would give, without records. Raises `KeyError` for a request the controller does not handle.
    """
    handle_request = handler_of(request.API_KEY)
    try:
        if context.access.is_restricted and request.API_KEY in NARROWINGS:
            return _handle_narrowed(image, request, context)
        return handle_request(image, request, context)
    except RequestError as error:
        return ControllerResult(error_response(request, error, api_version=context.api_version))


def handle_in_pieces(
    image: MetadataImage, request: Message, context: ControllerContext
) -> Pieces[ControllerResult[Message]]:
    """Do what `handle` does, with stops where it may take long."""
    place = IN_PIECES.get(-1 if request.API_KEY is None else request.API_KEY)
    if place is None:
        return handle(image, request, context)
    module, function = place
    begin: _InPieces = getattr(importlib.import_module(f"kvorum.controller.{module}"), function)
    try:
        return (yield from begin(image, request, context))
    except RequestError as error:
        return ControllerResult(error_response(request, error, api_version=context.api_version))


def _handle_narrowed(
    image: MetadataImage, request: Message, context: ControllerContext
) -> ControllerResult[Message]:
    """Handle what the client may ask for of `request`, and refuse the rest."""
    module, function = NARROWINGS[request.API_KEY or 0]
    narrow: _Narrow = getattr(importlib.import_module(f"kvorum.controller.{module}"), function)
    narrowed = narrow(image, request, context.access)
    result = handler_of(request.API_KEY)(image, narrowed.request, context)
    narrowed.complete(result.response)
    return result


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
