"""All the facts of one API that is answered out of the metadata alone, in one value.

The module in `kvorum.broker.views` that answers such an API ends with its value. Brokers serve it,
and controllers as well where the schema lists it for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kvorum.broker.broker_view import BrokerView
from kvorum.metadata.api_modules import Api
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.primitives import Message

Request = TypeVar("Request", bound=Message)


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
