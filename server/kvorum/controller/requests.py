"""The entry point of the controller: from a request to records and the response.

`kvorum.controller.apis` has one module for each API. A module is imported with the first request
for its API: a node that starts should not wait for code that it may never need.
"""

from collections.abc import Callable, Mapping
from functools import cache

from kvorum.controller import apis
from kvorum.controller.api import ControllerApi, ControllerResult, Pieces, at_once
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import RequestError, find_apis
from kvorum.metadata.image import MetadataImage
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.primitives import Message


@cache
def controller_apis() -> Mapping[ApiKey, Callable[[], ControllerApi[Message, Message]]]:
    """Return the loader of each API that the controller decides on, by the API's key."""
    kind: type[ControllerApi[Message, Message]] = ControllerApi
    return find_apis(apis, kind)


def controller_api(request: Message) -> ControllerApi[Message, Message]:
    """Return the API of `request`; raise `KeyError` if the controller does not decide on it."""
    key = request.API_KEY
    if key is None or key not in controller_apis():
        raise KeyError(request.NAME)
    return controller_apis()[ApiKey(key)]()


def handle(
    image: MetadataImage, request: Message, context: ControllerRequestContext
) -> ControllerResult[Message]:
    """Return the result of `handle_in_pieces` without a pause."""
    return at_once(handle_in_pieces(image, request, context))


def handle_in_pieces(
    image: MetadataImage, request: Message, context: ControllerRequestContext
) -> Pieces[ControllerResult[Message]]:
    """Return the active controller's result for `request`, with pauses where it may take long.

    `image` is its pending state. A request that is refused as a whole gets its own response, with
    the error that Kafka would return, and no records. Raises `KeyError` for a request the
    controller does not handle.
    """
    api = controller_api(request)
    filtered, permitted = None, request
    try:
        if context.access.is_restricted and api.filter_by_authorization is not None:
            filtered = api.filter_by_authorization(image, request, context.access)
            permitted = filtered.request
        decided = api.decide(image, permitted, context)
        result = decided if isinstance(decided, ControllerResult) else (yield from decided)
        if filtered is not None:
            filtered.complete(result.response)
        return result
    except RequestError as error:
        return ControllerResult(api.refuse(request, error, context.api_version))
