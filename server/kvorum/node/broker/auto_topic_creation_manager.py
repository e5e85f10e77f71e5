"""Kafka's AutoTopicCreationManager: topics created on request (auto.create.topics.enable)."""

import logging
from collections.abc import Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from kvorum.broker.dead_letter_queue.dead_letter_topic import GROUP_ENABLE
from kvorum.metadata.api import RequestError
from kvorum.metadata.known_error_code import known_error_code
from kvorum.metadata.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kvorum.node.broker.forwarding_manager import ForwardingManager
from kvorum.node.clock import Clock
from kvorum.node.config import (
    NodeConfig,
    OffsetsTopicSettings,
    ShareGroupStateTopicSettings,
    TransactionTopicSettings,
)
from kvorum.node.coroutines import Task, Wait
from kvorum.node.errors import CloseConnectionError
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.metadata_loader import PublishedImages
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import ControllerUnreachableError
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

DEFAULT_BY_CONTROLLER = -1
INTERNAL_TOPIC_TIMEOUT_MS: Final = 500
"""The wait for an internal topic: librdkafka asks for its coordinator again after as long."""
_Ask: TypeAlias = Coroutine[Wait[Any], Any, CreateTopicsResponse] | Wait[CreateTopicsResponse]
_log = logging.getLogger(__name__)


class AutoTopicCreationManager:
    """Asks the controller to create topics, in the name of the client that requested them."""

    def __init__(
        self,
        config: NodeConfig,
        forwarder: ForwardingManager,
        images: PublishedImages,
        clock: Clock,
    ) -> None:
        self._config = config
        self._forwarder = forwarder
        self._images = images
        self._clock = clock
        self._failures = RareEvents()
        self._names_under_way: set[str] = set()
        self._tasks: dict[str, Task[None]] = {}
        """The creations that are under way, by their first topic."""

    def begin(self, names: Iterable[str], request: IncomingRequest[Message]) -> None:
        """Begin to create those of `names` that are not yet being created; return at once."""
        wanted = [name for name in names if name not in self._names_under_way]
        if wanted:
            creation = self._creation(wanted, request)
            self._begin(
                wanted,
                self._forwarder.forward_changed(creation, creation.body, CreateTopicsResponse),
            )

    async def create_internal(self, name: str) -> None:
        """Create an internal topic for the broker's own sake; wait for it, but not for long.

        The broker asks in its own name: the client may not be allowed to create anything.
        """
        if name not in self._names_under_way:
            creation = self._request([name])
            self._begin([name], self._forwarder.channel.send(creation, CreateTopicsResponse))
        await self._images.wait_for(
            lambda image: image.topics.by_name(name) is not None, INTERNAL_TOPIC_TIMEOUT_MS
        )

    async def create_dead_letter_queue(self, name: str) -> None:
        """Create a topic for dead letters of share groups; wait for it, but not for long.

        Raises RequestError.
        """
        request = CreateTopicsRequest(
            topics=[_dead_letter_queue(name)], timeout_ms=self._config.network.request_timeout_ms
        )
        try:
            response = await self._forwarder.channel.send(request, CreateTopicsResponse)
        except ControllerUnreachableError as error:
            raise RequestError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        except NoCommonVersionError as error:
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        (created,) = response.topics
        code = known_error_code(created.error_code)
        if code is not ErrorCode.NONE:
            raise RequestError(code, created.error_message or code.default_message)
        await self._images.wait_for(
            lambda image: image.topics.by_name(name) is not None, INTERNAL_TOPIC_TIMEOUT_MS
        )

    def close(self) -> None:
        """End the creations that are under way."""
        for task in tuple(self._tasks.values()):
            task.close()

    def _begin(self, names: list[str], ask: _Ask) -> None:
        self._names_under_way.update(names)
        creation = Task(self._create(names, ask), partial(self._end, names[0]))
        if self._names_under_way.issuperset(names):
            self._tasks[names[0]] = creation

    def _end(self, name: str, result: Exception | None) -> None:
        self._tasks.pop(name, None)
        if result is not None:
            _log.error("Creating topics failed", exc_info=result)

    async def _create(self, names: list[str], ask: _Ask) -> None:
        try:
            response = await ask
        except (
            RequestError,
            CloseConnectionError,
            ControllerUnreachableError,
            NoCommonVersionError,
        ) as error:
            self._complain(", ".join(names), str(error))
            return
        finally:
            self._names_under_way.difference_update(names)
        for topic in response.topics:
            if topic.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                self._complain(topic.name, topic.error_message or f"error {topic.error_code}")

    def _complain(self, topics: str, error: str) -> None:
        # A client that requests a topic that cannot be created repeats the request often.
        suppressed_count = self._failures.happened(self._clock.monotonic_ms())
        if suppressed_count is not None:
            _log.warning(
                LogEvent(
                    "Topics could not be created automatically",
                    topics=topics,
                    error=error,
                    others=suppressed_count or None,
                )
            )

    def _creation(
        self, names: list[str], request: IncomingRequest[Message]
    ) -> IncomingRequest[CreateTopicsRequest]:
        header = RequestHeader(
            request_api_key=CreateTopicsRequest.API_KEY or 0,
            request_api_version=CreateTopicsRequest.MAX_VERSION,
            correlation_id=request.header.correlation_id,
            client_id=request.header.client_id,
        )
        return IncomingRequest(
            header=header,
            body=self._request(names),
            frame=b"",  # encoded when it is sent
            progress=request.progress,
            session=request.session,
            access=request.access,
        )

    def _request(self, names: list[str]) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=[self._topic(name) for name in names],
            timeout_ms=self._config.network.request_timeout_ms,
        )

    def _topic(self, name: str) -> CreateTopicsRequest.CreatableTopic:
        if name == GROUP_METADATA_TOPIC:
            return _offsets_topic(self._config.groups.topic)
        if name == TRANSACTION_STATE_TOPIC:
            return _transaction_topic(self._config.transactions.topic)
        if name == SHARE_GROUP_STATE_TOPIC:
            return _share_group_state_topic(self._config.share_state.topic)
        topics, texts = self._config.topics, self._config.texts
        return CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=(
                topics.partitions_default if "num.partitions" in texts else DEFAULT_BY_CONTROLLER
            ),
            replication_factor=(
                topics.replication_factor_default
                if "default.replication.factor" in texts
                else DEFAULT_BY_CONTROLLER
            ),
        )


def _offsets_topic(settings: OffsetsTopicSettings) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=GROUP_METADATA_TOPIC,
        num_partitions=settings.partition_count,
        replication_factor=settings.replication_factor,
        configs=_configs(
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.segment_bytes),
            }
        ),
    )


def _transaction_topic(settings: TransactionTopicSettings) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=TRANSACTION_STATE_TOPIC,
        num_partitions=settings.partition_count,
        replication_factor=settings.replication_factor,
        configs=_configs(
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(settings.min_insync_replicas),
                "segment.bytes": str(settings.segment_bytes),
            }
        ),
    )


def _share_group_state_topic(
    settings: ShareGroupStateTopicSettings,
) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=SHARE_GROUP_STATE_TOPIC,
        num_partitions=settings.partition_count,
        replication_factor=settings.replication_factor,
        configs=_configs(
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": str(settings.segment_bytes),
                "min.insync.replicas": str(settings.min_insync_replicas),
                "retention.ms": "-1",
            }
        ),
    )


def _dead_letter_queue(name: str) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=DEFAULT_BY_CONTROLLER,
        replication_factor=DEFAULT_BY_CONTROLLER,
        configs=_configs({GROUP_ENABLE: "true", "message.timestamp.type": "CreateTime"}),
    )


def _configs(configs: Mapping[str, str]) -> list[CreateTopicsRequest.CreatableTopicConfig]:
    return [
        CreateTopicsRequest.CreatableTopicConfig(name, value) for name, value in configs.items()
    ]
