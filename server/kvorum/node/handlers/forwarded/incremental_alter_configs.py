"""IncrementalAlterConfigs (44): this broker's own resources are checked, the rest forwarded."""

from typing import Final

from kvorum.broker.views.alter_configs import reassemble, screen
from kvorum.controller.apis import incremental_alter_configs as decided
from kvorum.metadata.api import PER_RESOURCE
from kvorum.node.handlers.requesters import view_of
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[IncrementalAlterConfigsRequest], broker: BrokerServices
) -> Message:
    """Refuse invalid changes of this broker's resources; the controller answers the rest."""
    body = request.body
    screened = screen(broker.loader.published, body, view_of(request, broker))
    response = IncrementalAlterConfigsResponse()
    if screened.remaining.resources:
        response = await broker.forwarder.forward_changed(
            request, screened.remaining, IncrementalAlterConfigsResponse
        )
    return reassemble(body, screened.answers, response)


API: Final = BrokerApi(
    request=IncrementalAlterConfigsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=decided.API.refuse,
)
