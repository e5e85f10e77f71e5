"""Metadata (3): brokers, topics and partitions; a missing topic may be created."""

from typing import Final

from kvorum.broker.views.metadata import metadata
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.handlers.requesters import basis_of_view, view_of
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[MetadataRequest], broker: BrokerServices) -> Message:
    """Answer from the broker's own metadata, and begin to create missing topics."""
    found = metadata(broker.loader.published, request.body, view_of(request, broker))
    broker.topic_creator.begin(found.topics_to_create, request)
    return found.response


def _refuse(request: MetadataRequest, error: RequestError, _version: int) -> MetadataResponse:
    """Refuse every topic; only the newest versions have a top-level error code."""
    return MetadataResponse(
        error_code=error.code,
        topics=[
            # In most versions the name cannot be null.
            MetadataResponseTopic(
                name=topic.name or "", topic_id=topic.topic_id, error_code=error.code
            )
            for topic in request.topics or ()
        ],
    )


API: Final = BrokerApi(
    request=MetadataRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
    # A response without an error has no topic that is to be created.
    basis=basis_of_view,
)
