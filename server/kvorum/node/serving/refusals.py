"""The answer that refuses the whole of any request."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.request_error import RequestError
from kvorum.wire.apis import response_class
from kvorum.wire.primitives import Message

FETCH_KEY: Final = 1
FIRST_FETCH_WITHOUT_PARTITIONS: Final = 13
TOLD_BY_CODE: Final = frozenset({55, 80, 81})
"""DescribeQuorum, AddRaftVoter and RemoveRaftVoter: their refusals have the code's own text."""


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

    if request.API_KEY == FETCH_KEY:
        return _fetch(request, error, version=version)
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
        told = error.code.default_message if key in TOLD_BY_CODE else error.message
        setattr(response, "error_message", told)  # noqa: B010 - no class declares both
    return response


def _fetch(request: Message, error: RequestError, *, version: int) -> Message:
    """Refuse Fetch; older versions tell it of each partition as well."""
    from kvorum.wire.messages.fetch import (  # noqa: PLC0415 - see above
        FetchRequest,
        FetchResponse,
        FetchResponseFetchableTopicResponse,
        FetchResponsePartitionData,
    )

    assert isinstance(request, FetchRequest)
    response = FetchResponse(error_code=error.code, session_id=request.session_id)
    if version >= FIRST_FETCH_WITHOUT_PARTITIONS:
        return response
    for topic in request.topics:
        partitions = [
            FetchResponsePartitionData(
                partition_index=partition.partition,
                error_code=error.code,
                high_watermark=-1,
                records=b"",
            )
            for partition in topic.partitions
        ]
        response.responses.append(
            FetchResponseFetchableTopicResponse(topic=topic.topic, partitions=partitions)
        )
    return response
