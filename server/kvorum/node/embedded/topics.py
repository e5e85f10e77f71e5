"""Topics of an embedded cluster: created as a client does it, and the leaders of partitions."""

import asyncio
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.image import MetadataImage
from kvorum.node.embedded.node import EmbeddedNode
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.node.tasks import run
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CLIENT_ID: Final = "kvorum-embedded"
_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
TOPIC_PATIENCE_SECONDS: Final = 30.0
"""The patience with a topic: milliseconds where a controller leads and brokers are unfenced."""
ANSWER_GRACE_MS: Final = 5_000
"""The time that the nodes have beyond the caller's patience, so that its error is the one that is
raised: it says what is known of the cluster."""


class TopicError(RuntimeError):
    """A topic could not be created; the text has Kafka's error and its message."""


class TopicTimeoutError(TopicError, TimeoutError):
    """A topic was not there in time, or without a leader of each partition."""


class UnknownPartitionError(LookupError):
    """The topic or the partition does not exist."""


async def create_topic(
    nodes: Collection[EmbeddedNode],
    name: str,
    *,
    partitions: int,
    replication_factor: int = 1,
    configs: Mapping[str, str] = _NO_CONFIGS,
    may_exist: bool = False,
    timeout_s: float = TOPIC_PATIENCE_SECONDS,
) -> None:
    """Create a topic; return when every running broker knows a leader of each partition.

    One that exists is left as it is if it `may_exist`. Raises TopicError, after `timeout_s`
    TopicTimeoutError.
    """
    brokers = [one for one in nodes if one.place.is_broker and one.node.is_running]
    if not brokers:
        raise TopicError(f"topic {name} cannot be created: no broker runs")
    topic = CreateTopicsRequest.CreatableTopic(
        name,
        partitions,
        replication_factor,
        configs=[CreateTopicsRequest.CreatableTopicConfig(*config) for config in configs.items()],
    )
    timeout_ms = int(timeout_s * 1000) + ANSWER_GRACE_MS
    try:
        async with asyncio.timeout(timeout_s):
            is_new = await _create(brokers[0], topic, may_exist=may_exist, timeout_ms=timeout_ms)
            for broker in brokers:
                images = broker.node.shared_server.images
                if is_new:
                    await run(images.wait_for(lambda image: _is_led(image, name, partitions)))
    except TimeoutError:
        raise TopicTimeoutError(f"topic {name} has no leaders after {timeout_s:g} s") from None
    except ClientConnectionError as error:
        raise TopicError(f"topic {name} could not be created: {error}") from error


async def _create(
    broker: EmbeddedNode,
    topic: CreateTopicsRequest.CreatableTopic,
    *,
    may_exist: bool,
    timeout_ms: int,
) -> bool:
    """Create a topic and return whether it is a new one."""
    address = broker.internal_address
    assert address is not None
    connection = await ClientConnection.open(
        host=address.host,
        port=address.port,
        client_id=CLIENT_ID,
        timeout_ms=timeout_ms,
    )
    try:
        response = await connection.request(
            CreateTopicsRequest([topic], timeout_ms), CreateTopicsResponse, timeout_ms=timeout_ms
        )
    finally:
        await connection.close()
    (answer,) = response.topics
    if may_exist and answer.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        return False
    if answer.error_code != ErrorCode.NONE:
        error = ErrorCode(answer.error_code).name
        raise TopicError(f"topic {topic.name}: {error}: {answer.error_message or 'no reason'}")
    return True


def _is_led(image: MetadataImage, name: str, partitions: int) -> bool:
    found = image.topics.by_name(name)
    if found is None:
        return False
    return all(
        index in found.partitions and found.partitions[index].has_leader
        for index in range(partitions)
    )


def leader_of(nodes: Collection[EmbeddedNode], topic: str, partition: int) -> int | None:
    """Return the id of the broker that leads a partition, None without one.

    The newest metadata of a running node counts. Raises UnknownPartitionError.
    """
    loaders = [one.node.shared_server.loader for one in nodes if one.node.is_running]
    newest = max(loaders, key=lambda loader: loader.published_offset, default=None)
    found = None if newest is None else newest.published.topics.by_name(topic)
    if found is None:
        raise UnknownPartitionError(f"there is no topic {topic}")
    state = found.partitions.get(partition)
    if state is None:
        count = len(found.partitions)
        raise UnknownPartitionError(f"topic {topic} has {count} partitions, and no {partition}")
    return state.leader if state.has_leader else None
