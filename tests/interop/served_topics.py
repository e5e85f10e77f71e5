"""Topics that a broker has just been asked to create: it answers before it has taken them up."""

from __future__ import annotations

from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
)
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_LATEST = -1


def wait_until_served(client: RawClient, *names: str, partition: int = 0) -> None:
    """Wait until a broker leads one partition of each topic."""
    wish = ListOffsetsRequestListOffsetsPartition(partition, -1, _LATEST)
    request = ListOffsetsRequest(
        topics=[ListOffsetsRequestListOffsetsTopic(name, [wish]) for name in names]
    )

    def are_served() -> bool:
        answer = client.ask(request, ListOffsetsResponse, 5)
        codes = {one.error_code for topic in answer.topics for one in topic.partitions}
        return codes == {0}

    wait_for(are_served, f"{', '.join(names)} are served")


def topic_id(client: RawClient, name: str) -> bytes:
    """Return the id that a topic has."""
    request = MetadataRequest([MetadataRequestTopic(name=name)])
    (described,) = client.ask(request, MetadataResponse, 12).topics
    return described.topic_id
