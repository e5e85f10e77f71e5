"""The answer that refuses the whole of any request."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.wire.apis import response_class
from kvorum.wire.primitives import Message


def refusal_of(request: Message, error: RequestError, *, version: int) -> Message | None:
    """Return the response to `request` that says `error`, None where its form has no place for it.

    Requests that the controller handles know best how they are refused; of the others, those with
    an error for the whole response are refused there.
    """
    # Imported here, for a node that never has to refuse anything in this way.
    from kvorum.controller.requests import HANDLERS, error_response  # noqa: PLC0415 - see above

    if request.API_KEY in HANDLERS:
        return error_response(request, error, api_version=version)
    from kvorum.broker.views.refusals import refusal_of_view  # noqa: PLC0415 - see above

    of_view = refusal_of_view(request, error)
    if of_view is not None:
        return of_view
    key = request.API_KEY
    if key is None:
        return None
    response = response_class(key)()
    # Which fields a response has is known only now: the class came out of a table.
    if not hasattr(response, "error_code"):
        return None
    setattr(response, "error_code", int(error.code))  # noqa: B010 - no class declares both
    if hasattr(response, "error_message"):
        setattr(response, "error_message", error.message)  # noqa: B010 - no class declares both
    return response
