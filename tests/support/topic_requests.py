"""Requests that create topics and list them."""

from tests.support.raw_client import RawClient

from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse


def topics(address: str) -> set[str | None]:
    with RawClient(address) as client:
        return {
            topic.name for topic in client.ask(MetadataRequest(None), MetadataResponse, 12).topics
        }
